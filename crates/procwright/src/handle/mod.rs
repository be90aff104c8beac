//! A descriptor that any thread may close while others are blocked on it.
//!
//! # What a close does
//!
//! It sets a bit, wakes the one operation that sleeps on the descriptor, if one
//! does, and returns. The operations themselves return "closed", in the call in
//! which they are blocked: no signal is sent, no exception thrown into a thread.
//! The descriptor goes with the last of them ([`gate`]), so that its number means
//! nothing else before; and it goes at once, so that whoever is at the other end
//! of the pipe learns of it: a process that merely sleeps in `poll` keeps a pipe's
//! end alive.
//!
//! The close costs the same however many operations wait, on this handle
//! ([`turn`]) or on others. Two handles on one file do not know of each other.
//!
//! # Forks
//!
//! A fork closes its copy ([`Kept`]), and operations in it fail. The wake-up is
//! shared with the parent, so a close in a fork rings nobody.
//!
//! # Why not …
//!
//! - `close(2)` alone: the reader stays blocked, and the writer sees no EPIPE
//!   until it has left; then somebody else's file has the number.
//! - a signal to the reader: comes between the look and the sleep, and is lost.
//! - `dup2` of something at its end over the descriptor: helps those who come
//!   later, not who is inside already.
#![allow(unsafe_code)]

mod gate;
mod lent;
mod patience;
mod ready;
mod turn;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use crate::sync::{Ordering, fence};
use crate::sys::fork::{self, Kept};
use crate::sys::poll::{self, Fd, Flags};
use crate::sys::wake::Wake;
use gate::Gate;
pub use patience::{Paced, Patience};
pub(crate) use ready::Ready;
pub(crate) use turn::{Mine, Turn};

/// A descriptor in non-blocking mode, for one direction.
#[derive(Debug)]
pub(crate) struct Handle {
    gate: Gate<Kept>,
    turn: Turn,
    /// Rung by the close. Made when the first operation has to sleep: most never
    /// do, and it is a descriptor.
    wake: OnceLock<Arc<Wake>>,
    /// For event loops.
    ready: OnceLock<Arc<Ready>>,
    /// Somebody else may use the descriptor, in blocking mode.
    lent: AtomicBool,
    generation: u32,
}

/// Why an operation did not come to its end.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The handle is closed.
    Closed,
    /// The deadline has come.
    TimedOut,
    /// Its interrupt has become readable.
    Interrupted,
    /// The system says no.
    Os(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Os(error)
    }
}

impl Handle {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Handle> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Handle {
            gate: Gate::new(Kept::new(fd)),
            turn: Turn::new(),
            wake: OnceLock::new(),
            ready: OnceLock::new(),
            lent: AtomicBool::new(false),
            generation: fork::generation(),
        })
    }

    /// Runs `attempt` until it does not say `WouldBlock`, and sleeps in between
    /// until the descriptor is ready for `flags`.
    pub(crate) fn operate<R>(
        &self,
        flags: Flags,
        patience: Patience<'_>,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<R>,
    ) -> Result<R, Refused> {
        loop {
            if self.is_lent() {
                self.sleep(flags, patience)?;
            }
            // In and out again for each attempt: while this sleeps in the queue
            // it does not keep the descriptor, only whoever polls does.
            let inside = self.gate.enter().ok_or(Refused::Closed)?;
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
    fn sleep(&self, flags: Flags, patience: Patience<'_>) -> Result<(), Refused> {
        let mine = self.turn.take(patience, || self.gate.is_closed())?;
        let wake = self.wake()?;
        // Here the wake-up is there and the handle looked at afterwards; a close
        // closes first and looks for a wake-up afterwards. One of the two sees
        // the other, whatever the order.
        fence(Ordering::SeqCst);
        let inside = self.gate.enter().ok_or(Refused::Closed)?;
        let fd = inside.get()?;
        let interrupt = patience.interrupt();
        let mut fds = [
            Fd::from_borrowed_fd(fd, flags),
            Fd::new(&**wake, Flags::IN),
            // In vain if there is none.
            Fd::from_borrowed_fd(interrupt.unwrap_or(fd), Flags::IN),
        ];
        let fds = &mut fds[..2 + usize::from(interrupt.is_some())];
        let polled = poll::poll(fds, patience.deadline());
        let [ready, closed] = [0, 1].map(|at| !fds[at].revents().is_empty());
        // Out before the next may sleep, and before the turn is passed on.
        drop(inside);
        drop(mine);
        match polled {
            _ if closed => Err(Refused::Closed),
            Ok(0) => Err(Refused::TimedOut),
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e.into()),
            // What is there goes before an interrupt, which the next call meets.
            Ok(_) if !ready => Err(Refused::Interrupted),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn wake(&self) -> io::Result<&Arc<Wake>> {
        if let Some(wake) = self.wake.get() {
            return Ok(wake);
        }
        let wake = Arc::new(Wake::new()?);
        Ok(self.wake.get_or_init(|| wake))
    }

    /// Closes it; false if it was closed before. Returns at once: operations
    /// that are inside are told and leave, and the last takes the descriptor
    /// along.
    pub(crate) fn close(&self) -> bool {
        let closed = self.gate.close();
        fence(Ordering::SeqCst);
        if closed
            && self.generation == fork::generation()
            && let Some(wake) = self.wake.get()
        {
            // Never silenced: whoever sleeps next is woken too.
            wake.ring();
        }
        closed
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.gate.is_closed()
    }

    /// Whether this is a fork of the process that the handle is of.
    pub(crate) fn is_forked(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Looks at the descriptor; none once it is closed, and in a fork.
    pub(crate) fn look<R>(&self, look: impl FnOnce(BorrowedFd<'_>) -> R) -> Option<R> {
        let inside = self.gate.enter()?;
        let fd = inside.get().ok()?;
        Some(look(fd))
    }

    /// The descriptor, for the length of an operation.
    #[cfg(all(test, not(procwright_loom)))]
    pub(crate) fn enter(&self) -> Option<gate::Inside<'_, Kept>> {
        self.gate.enter()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // For those who watch its readiness.
        self.close();
    }
}

#[cfg(all(test, not(procwright_loom)))]
mod tests;

#[cfg(all(test, procwright_loom))]
mod loom_tests {
    use super::Refused;
    use super::gate::Gate;
    use super::turn::{Bell, Turn};
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

    fn gate() -> (Arc<Gate<Resource>>, Arc<AtomicUsize>) {
        let ends = Arc::new(AtomicUsize::new(0));
        (Arc::new(Gate::new(Resource(ends.clone()))), ends)
    }

    #[test]
    fn loom_nobody_inside_sees_it_go() {
        loom::model(|| {
            let (gate, ends) = gate();
            let users: Vec<_> = (0..2)
                .map(|_| {
                    let gate = gate.clone();
                    thread::spawn(move || {
                        if let Some(inside) = gate.enter() {
                            assert_eq!(inside.0.load(Ordering::SeqCst), 0, "gone while inside");
                        }
                    })
                })
                .collect();
            gate.close();
            for user in users {
                user.join().unwrap();
            }
            assert_eq!(ends.load(Ordering::SeqCst), 1);
            assert!(gate.enter().is_none());
        });
    }

    #[test]
    fn loom_one_of_two_closers_closes() {
        loom::model(|| {
            let (gate, ends) = gate();
            let other = gate.clone();
            let closer = thread::spawn(move || other.close());
            let mine = gate.close();
            assert!(closer.join().unwrap() != mine);
            assert_eq!(ends.load(Ordering::SeqCst), 1);
        });
    }

    /// One goes to sleep while another closes, as `sleep` and `close` do it.
    fn sleep_and_close(rings_first: bool) {
        use crate::sync::{Ordering as O, fence};
        loom::model(move || {
            let (gate, _) = gate();
            // The wake-up is made late; rung is what the poll would see.
            let made = Arc::new(AtomicBool::new(false));
            let sleeper = {
                let (gate, made) = (gate.clone(), made.clone());
                thread::spawn(move || {
                    made.store(true, O::Release);
                    fence(O::SeqCst);
                    // Whether it would go to sleep.
                    gate.enter().is_some()
                })
            };
            let mut rung = rings_first && made.load(O::Acquire);
            gate.close();
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

    /// That the model finds it when the steps are the wrong way round.
    #[test]
    #[should_panic(expected = "asleep for ever")]
    fn loom_a_close_that_rings_first_is_slept_through() {
        sleep_and_close(true);
    }

    /// A sticky wake-up that loom can see.
    struct Ring(Mutex<bool>, Condvar);

    impl Bell for Ring {
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
    enum Queues {
        Plainly,
        /// On a wake-up of its own.
        Bell,
        /// The same, and it has no patience.
        Briefly,
    }

    /// Each waits for its turn, and takes the close for found once it had it.
    fn pass_on(kinds: &'static [Queues]) {
        loom::model(move || {
            let turn = Arc::new(Turn::<Ring>::new());
            let over = Arc::new(AtomicBool::new(false));
            let threads: Vec<_> = kinds
                .iter()
                .map(|&kind| {
                    let (turn, over) = (turn.clone(), over.clone());
                    thread::spawn(move || {
                        let is_over = || over.load(Ordering::SeqCst);
                        let bell = Ring::new();
                        let mine = match kind {
                            Queues::Plainly => turn.queue_up(Deadline::NEVER, is_over),
                            Queues::Bell => turn.queue_with(&bell, is_over, || {
                                bell.sleep();
                                Ok(())
                            }),
                            Queues::Briefly => {
                                turn.queue_with(&bell, is_over, || Err(Refused::Interrupted))
                            }
                        };
                        if mine.is_ok() {
                            // As whoever polls finds the close.
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
        pass_on(&[Queues::Plainly, Queues::Plainly]);
    }

    #[test]
    fn loom_the_turn_is_passed_on_to_wake_ups() {
        pass_on(&[Queues::Bell, Queues::Bell]);
    }

    #[test]
    fn loom_the_turn_is_passed_on_between_the_two() {
        pass_on(&[Queues::Bell, Queues::Plainly]);
    }

    #[test]
    fn loom_who_gives_up_keeps_nobody_waiting() {
        pass_on(&[Queues::Briefly, Queues::Bell]);
        pass_on(&[Queues::Briefly, Queues::Plainly]);
    }
}
