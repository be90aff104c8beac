//! A descriptor that any thread may close while others are blocked on it.
//!
//! # What a close does
//!
//! A close sets a bit, wakes the one operation that sleeps on the descriptor, if one
//! does, and returns. The operations themselves return "closed", in the call in
//! which they are blocked: no signal is sent, no exception thrown into a thread.
//! The descriptor is closed with the last of them (`closable`), so that its number
//! means nothing else before. That happens at once, so that the process at the other
//! end of the pipe learns of it: one that merely sleeps in `poll` keeps a pipe's end
//! alive.
//!
//! The close costs as much with one waiting operation as with many, on this handle
//! (`interruptible_lock`) or on others. Two handles on one file do not know of each
//! other.
//!
//! # The race of a sleep with a close
//!
//! A sleeper and a closer each take two steps, with a SeqCst fence between them:
//!
//! 1. The sleeper puts the wake-up where a closer finds it.
//! 2. The sleeper enters, which fails if the closed bit is set, and polls.
//! 3. The closer sets the closed bit.
//! 4. The closer rings the wake-up if it finds one.
//!
//! Whatever the order, 2 sees 3 or 4 sees 1: the sleeper does not sleep, or is woken.
//! The loom tests below run all orders, and find the hang when 3 and 4 are swapped.
//!
//! # Forks
//!
//! A fork closes its copy ([`CloseOnFork`]), and operations in it fail. The wake-up is
//! shared with the parent, so a close in a fork does not ring it.
//!
//! # Why not …
//!
//! - `close(2)` alone: the reader stays blocked, and the writer sees no EPIPE
//!   until it has left; then another file has the number.
//! - a signal to the reader: comes between its check and its sleep, and is lost.
//! - `dup2` of a descriptor at its end of file over this one: helps operations that
//!   come later, not those that are inside already.
#![allow(unsafe_code)]

mod closable;
mod closed;
mod expose_fd;
mod interruptible_lock;
mod patience;
mod readiness_fd;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::fork::{self, CloseOnFork, OnceBox};
use crate::poll::{self, Fd, Flags};
use crate::sync::{Ordering, fence};
use crate::wake::Wake;
use closable::Closable;
pub use closed::Closed;
pub use interruptible_lock::{InterruptibleGuard, InterruptibleLock};
pub use patience::{Paced, Patience};
pub use readiness_fd::ReadinessFd;

/// A descriptor in non-blocking mode, for one direction.
#[derive(Debug)]
pub struct Handle {
    fd: Closable<CloseOnFork>,
    lock: InterruptibleLock,
    /// Wake-up that the close rings. Made when the first operation has to sleep: most
    /// never do, and it is a descriptor.
    wake: OnceBox<Arc<Wake>>,
    /// Readiness for event loops, once asked for.
    ready: OnceBox<Arc<ReadinessFd>>,
    /// Set while the number is used elsewhere too, in blocking mode.
    exposed: AtomicBool,
    /// Fork generation in which the handle was made.
    generation: u32,
}

/// The reason why an operation did not complete.
#[derive(Debug)]
pub enum HandleError {
    /// The handle is closed.
    Closed,
    /// The deadline has come.
    TimedOut,
    /// The interrupt of the [`Patience`] is readable.
    Interrupted,
    /// The system refused the operation.
    Os(io::Error),
}

impl From<io::Error> for HandleError {
    fn from(error: io::Error) -> HandleError {
        HandleError::Os(error)
    }
}

impl Handle {
    /// Makes the descriptor non-blocking and takes it over.
    ///
    /// # Errors
    /// Those of `ioctl(2)`.
    pub fn new(fd: OwnedFd) -> io::Result<Handle> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Handle {
            fd: Closable::new(CloseOnFork::new(fd)),
            lock: InterruptibleLock::new(),
            wake: OnceBox::new(),
            ready: OnceBox::new(),
            exposed: AtomicBool::new(false),
            generation: fork::generation(),
        })
    }

    /// Runs `attempt` until it does not say `WouldBlock`, and sleeps in between
    /// until the descriptor is ready for `flags`.
    ///
    /// # Errors
    /// [`HandleError`], and those of `attempt`.
    ///
    /// # Blocking
    /// As long as `patience` lasts.
    pub fn operate<R>(
        &self,
        flags: Flags,
        patience: Patience<'_>,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<R>,
    ) -> Result<R, HandleError> {
        loop {
            if self.is_exposed() {
                self.sleep(flags, patience)?;
            }
            // Entered anew for each attempt: while this thread queues for the lock it does not
            // keep the descriptor open, only the thread that polls does.
            let inside = self.fd.enter().ok_or(HandleError::Closed)?;
            match attempt(inside.get()?) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.into()),
                Ok(done) => return Ok(done),
            }
            drop(inside);
            self.sleep(flags, patience)?;
        }
    }

    /// Sleeps until the descriptor may be ready.
    fn sleep(&self, flags: Flags, patience: Patience<'_>) -> Result<(), HandleError> {
        let mine = self.lock.take(patience, || self.fd.is_closed())?;
        let wake = self.wake()?;
        // Step 1 is done: the wake-up is there. The fence orders it before the entry below,
        // which is step 2; `close` has its fence between steps 3 and 4.
        fence(Ordering::SeqCst);
        let inside = self.fd.enter().ok_or(HandleError::Closed)?;
        let fd = inside.get()?;
        let interrupt = patience.interrupt();
        let mut fds = [
            Fd::from_borrowed_fd(fd, flags),
            Fd::new(&**wake, Flags::IN),
            // Left out below if there is no interrupt.
            Fd::from_borrowed_fd(interrupt.unwrap_or(fd), Flags::IN),
        ];
        let fds = &mut fds[..2 + usize::from(interrupt.is_some())];
        let polled = poll::poll(fds, patience.deadline());
        let [ready, closed] = [0, 1].map(|at| !fds[at].revents().is_empty());
        // Left before the next thread may sleep, and before the lock is passed on.
        drop(inside);
        drop(mine);
        match polled {
            _ if closed => Err(HandleError::Closed),
            Ok(0) => Err(HandleError::TimedOut),
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e.into()),
            // Readiness goes before an interrupt, which the next call meets.
            Ok(_) if !ready => Err(HandleError::Interrupted),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn wake(&self) -> io::Result<&Arc<Wake>> {
        if let Some(wake) = self.wake.get() {
            return Ok(wake);
        }
        let wake = Arc::new(Wake::new()?);
        Ok(self.wake.get_or_insert(wake))
    }

    /// Closes the handle; false if it was closed before. Returns at once: operations
    /// that are inside wake up and leave, and the last closes the descriptor.
    pub fn close(&self) -> bool {
        let closed = self.fd.close();
        // The fence between steps 3 and 4 of the race told above.
        fence(Ordering::SeqCst);
        if closed
            && self.generation == fork::generation()
            && let Some(wake) = self.wake.get()
        {
            // Never silenced: an operation that sleeps later is woken too.
            wake.ring();
        }
        closed
    }

    /// True if the handle is closed.
    pub fn is_closed(&self) -> bool {
        self.fd.is_closed()
    }

    /// True if this is a fork of the process that made the handle.
    pub fn is_forked(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Lends the descriptor to `use_fd`; `None` once it is closed, and in a fork.
    pub fn with_fd<R>(&self, use_fd: impl FnOnce(BorrowedFd<'_>) -> R) -> Option<R> {
        let inside = self.fd.enter()?;
        let fd = inside.get().ok()?;
        Some(use_fd(fd))
    }

    /// The descriptor, for the length of an operation.
    #[cfg(all(test, not(procwright_loom)))]
    fn enter(&self) -> Option<closable::Entered<'_, CloseOnFork>> {
        self.fd.enter()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Wakes event loops that watch the readiness.
        self.close();
    }
}

#[cfg(all(test, not(procwright_loom)))]
mod tests;

#[cfg(all(test, procwright_loom))]
mod loom_tests {
    use super::HandleError;
    use super::closable::Closable;
    use super::interruptible_lock::{InterruptibleLock, StickyWake};
    use crate::time::Deadline;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use loom::sync::{Condvar, Mutex};
    use loom::thread;

    /// A descriptor that notices when it is used after its end, or ends twice.
    struct Resource(Arc<AtomicUsize>);

    impl Drop for Resource {
        fn drop(&mut self) {
            assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "closed twice");
        }
    }

    fn closable() -> (Arc<Closable<Resource>>, Arc<AtomicUsize>) {
        let ends = Arc::new(AtomicUsize::new(0));
        (Arc::new(Closable::new(Resource(ends.clone()))), ends)
    }

    #[test]
    fn loom_nobody_inside_sees_it_go() {
        loom::model(|| {
            let (closable, ends) = closable();
            let users: Vec<_> = (0..2)
                .map(|_| {
                    let closable = closable.clone();
                    thread::spawn(move || {
                        if let Some(inside) = closable.enter() {
                            assert_eq!(inside.0.load(Ordering::SeqCst), 0, "gone while inside");
                        }
                    })
                })
                .collect();
            closable.close();
            for user in users {
                user.join().unwrap();
            }
            assert_eq!(ends.load(Ordering::SeqCst), 1);
            assert!(closable.enter().is_none());
        });
    }

    #[test]
    fn loom_one_of_two_closers_closes() {
        loom::model(|| {
            let (closable, ends) = closable();
            let other = closable.clone();
            let closer = thread::spawn(move || other.close());
            let mine = closable.close();
            assert!(closer.join().unwrap() != mine);
            assert_eq!(ends.load(Ordering::SeqCst), 1);
        });
    }

    /// Runs a thread that goes to sleep against one that closes, as `sleep` and `close`
    /// do.
    fn sleep_and_close(rings_first: bool) {
        use crate::sync::{Ordering as O, fence};
        loom::model(move || {
            let (closable, _) = closable();
            // The wake-up is made late; `rung` is what the poll would see.
            let made = Arc::new(AtomicBool::new(false));
            let sleeper = {
                let (closable, made) = (closable.clone(), made.clone());
                thread::spawn(move || {
                    made.store(true, O::Release);
                    fence(O::SeqCst);
                    // True if the thread would go to sleep.
                    closable.enter().is_some()
                })
            };
            let mut rung = rings_first && made.load(O::Acquire);
            closable.close();
            if !rings_first {
                fence(O::SeqCst);
                rung = made.load(O::Acquire);
            }
            let slept = sleeper.join().unwrap();
            assert!(!slept || rung, "asleep for ever");
        });
    }

    #[test]
    fn loom_a_close_is_never_slept_through() {
        sleep_and_close(false);
    }

    /// The model finds the hang when the steps are the wrong way round.
    #[test]
    #[should_panic(expected = "asleep for ever")]
    fn loom_a_close_that_rings_first_is_slept_through() {
        sleep_and_close(true);
    }

    /// A sticky wake-up that loom can see.
    struct Ring(Mutex<bool>, Condvar);

    impl StickyWake for Ring {
        fn ring(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_all();
        }
    }

    impl Ring {
        fn new() -> std::sync::Arc<Ring> {
            std::sync::Arc::new(Ring(Mutex::new(false), Condvar::new()))
        }

        fn sleep(&self) {
            let mut rung = self.0.lock().unwrap();
            while !std::mem::take(&mut *rung) {
                rung = self.1.wait(rung).unwrap();
            }
        }
    }

    #[derive(Clone, Copy)]
    enum WaitKind {
        Plainly,
        /// Waits on a wake-up of its own.
        StickyWake,
        /// Waits on a wake-up of its own, and gives up at once.
        Briefly,
    }

    /// Runs threads that each wait for the lock, and see a close once they had it.
    fn pass_on(kinds: &'static [WaitKind]) {
        loom::model(move || {
            let lock = Arc::new(InterruptibleLock::<Ring>::new());
            let over = Arc::new(AtomicBool::new(false));
            let threads: Vec<_> = kinds
                .iter()
                .map(|&kind| {
                    let (lock, over) = (lock.clone(), over.clone());
                    thread::spawn(move || {
                        let is_over = || over.load(Ordering::SeqCst);
                        let bell = Ring::new();
                        let mine = match kind {
                            WaitKind::Plainly => lock.lock_at_condvar(Deadline::NEVER, is_over),
                            WaitKind::StickyWake => lock.lock_with_wake(&bell, is_over, || {
                                bell.sleep();
                                Ok(())
                            }),
                            WaitKind::Briefly => lock
                                .lock_with_wake(&bell, is_over, || Err(HandleError::Interrupted)),
                        };
                        if mine.is_ok() {
                            // A thread that polls finds the close.
                            over.store(true, Ordering::SeqCst);
                        }
                        drop(mine);
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }

    #[test]
    fn loom_the_turn_is_passed_on() {
        pass_on(&[WaitKind::Plainly, WaitKind::Plainly]);
    }

    #[test]
    fn loom_the_turn_is_passed_on_to_wake_ups() {
        pass_on(&[WaitKind::StickyWake, WaitKind::StickyWake]);
    }

    #[test]
    fn loom_the_turn_is_passed_on_between_the_two() {
        pass_on(&[WaitKind::StickyWake, WaitKind::Plainly]);
    }

    #[test]
    fn loom_who_gives_up_keeps_nobody_waiting() {
        pass_on(&[WaitKind::Briefly, WaitKind::StickyWake]);
        pass_on(&[WaitKind::Briefly, WaitKind::Plainly]);
    }
}
