//! Waits without Ruby's lock that Ruby's interrupts end: `Thread#raise`, `Thread#kill`,
//! signals.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use magnus::Error;
use procwright::process::Stop;
use procwright::stream::Patience;
use procwright::time::Deadline;
use procwright::{BoxError, Cancel, Demand, Moment, Watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::errors::{panic_error, system_error};
use crate::gvl::{self, Panic, ThreadKind, WakeFd};

/// The interrupts of this thread, for as long as it waits. Readable once there is one.
pub(crate) struct Interrupts {
    wake_fd: Option<WakeFd>,
    kind: ThreadKind,
}

impl Interrupts {
    pub(crate) fn watch() -> Result<Interrupts, Error> {
        Interrupts::try_watch().map_err(|error| cannot_wait(&error))
    }

    /// As [`watch`](Interrupts::watch), with the system's error, which is for want of
    /// descriptors.
    pub(crate) fn try_watch() -> io::Result<Interrupts> {
        let kind = ThreadKind::current();
        Ok(Interrupts {
            wake_fd: Some(WakeFd::take(kind)?),
            kind,
        })
    }

    fn wake_fd(&self) -> &WakeFd {
        self.wake_fd.as_ref().expect("only drop gives it back")
    }

    pub(crate) fn clear(&self) {
        self.wake_fd().clear();
    }

    /// Handles pending interrupts. A later one makes the descriptor readable.
    ///
    /// # Errors
    /// What an interrupt has thrown.
    pub(crate) fn check(&self) -> Result<(), Error> {
        // The order matters: an interrupt between the two is handled now, and one that comes
        // after both finds the descriptor clear. The other way round, one in between would
        // be cleared unseen.
        self.clear();
        gvl::check_interrupts()
    }

    /// Handles pending interrupts, and then does `work` without the lock. None if one came in
    /// between.
    ///
    /// # Errors
    /// What an interrupt has thrown.
    pub(crate) fn without_gvl<T>(
        &self,
        work: impl FnOnce() -> T,
    ) -> Result<Option<Result<T, Panic>>, Error> {
        self.check()?;
        Ok(self.without_gvl_unchecked(work))
    }

    /// [`without_gvl`](Self::without_gvl) for a caller that has handled them.
    pub(crate) fn without_gvl_unchecked<T>(
        &self,
        work: impl FnOnce() -> T,
    ) -> Option<Result<T, Panic>> {
        gvl::without_gvl(self.wake_fd(), work)
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake_fd().as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        if let Some(wake_fd) = self.wake_fd.take() {
            wake_fd.give_back(self.kind);
        }
    }
}

/// Runs `operation` until it is done, without the lock. If an interrupt throws
/// something, that is the outer error, and the operation was not done. It has to be
/// one that can be taken up again.
pub(crate) fn block_without_gvl<T>(
    deadline: Deadline,
    mut operation: impl FnMut(Patience<'_>) -> io::Result<T>,
) -> Result<io::Result<T>, Error> {
    let interrupts = Interrupts::watch()?;
    let process = std::process::id();
    loop {
        let patience = Patience::until(deadline).or_readable(interrupts.as_fd());
        interrupts.check()?;
        if std::process::id() != process {
            // A handler has forked. The descriptor is the parent's, which takes from it what
            // tells of interrupts here.
            return block_without_gvl(deadline, operation);
        }
        match interrupts.without_gvl_unchecked(|| operation(patience)) {
            None => {}
            Some(Err(panic)) => return Err(panic_error(&*panic)),
            Some(Ok(Err(error))) if error.kind() == io::ErrorKind::Interrupted => {}
            Some(Ok(done)) => return Ok(done),
        }
    }
}

/// Tries `operation` with the lock first, which costs less than to let go of it: for what is
/// mostly there at once.
pub(crate) fn try_then_block<T>(
    deadline: Deadline,
    mut operation: impl FnMut(Patience<'_>) -> io::Result<T>,
) -> Result<io::Result<T>, Error> {
    match operation(nonblocking()) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            block_without_gvl(deadline, operation)
        }
        done => Ok(done),
    }
}

/// The patience of a call that does not wait.
pub(crate) fn nonblocking<'a>() -> Patience<'a> {
    Patience::until(Deadline::at(Instant::now()))
}

/// Sleeps until one of them is readable, or until the deadline.
pub(crate) fn poll_readable(descriptors: &[BorrowedFd<'_>], deadline: Deadline) {
    let watched = descriptors.iter();
    let mut watched: Vec<_> = watched
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let left = deadline.remaining(Instant::now());
    // A time too long for a `Timespec` is for ever.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    // A signal ends it as well: every caller looks again in any case.
    let _ = poll(&mut watched, left.as_ref());
}

/// Has a run pause at every interrupt: its thread then handles it with the lock.
pub(crate) struct PauseOnInterrupt<'a>(pub(crate) &'a Interrupts);

impl Watch for PauseOnInterrupt<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn ready(&mut self, _moment: Moment<'_>) -> Result<Demand, BoxError> {
        self.0.clear();
        Ok(Demand::Pause)
    }
}

/// Stops something. An interrupt ends the grace, and is the error when all is over: nothing
/// is left as it was.
///
/// `stopping` is on a thread of its own, since it cannot be left in the middle. It gets
/// the policy and a descriptor that is readable once there is no more grace. *Not a scoped
/// thread*, which is always joined: a fork, which a signal handler can make, has not that
/// thread.
///
/// Where no thread can be had, it is done on this one.
pub(crate) fn stop_on_thread<T, F>(policy: Stop, stopping: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce(Stop, &WakeFd) -> T + Send + 'static,
{
    let interrupts = Interrupts::watch()?;
    let hurry = Arc::new(WakeFd::take(ThreadKind::Other).map_err(|e| cannot_wait(&e))?);
    let over = Arc::new(WakeFd::take(ThreadKind::Other).map_err(|e| cannot_wait(&e))?);
    hurry.clear();
    over.clear();
    // Handed over by a channel: a thread that cannot be made would take a capture with it.
    let (hand, handed) = mpsc::channel();
    let worker = {
        let (hurry, over) = (Arc::clone(&hurry), Arc::clone(&over));
        std::thread::Builder::new()
            .name("procwright-stop".into())
            .spawn(move || {
                let stopped = catch_unwind(AssertUnwindSafe(|| {
                    let stopping: F = handed.recv().expect("who made the thread sends it");
                    stopping(policy, &hurry)
                }));
                over.wake();
                stopped
            })
    };
    let Ok(worker) = worker else {
        return stop_here(&interrupts, policy, stopping, &hurry);
    };
    // The thread waits for it.
    let _ = hand.send(stopping);
    let process = std::process::id();
    let mut raised = None;
    while !worker.is_finished() {
        interrupts.clear();
        let thrown = gvl::check_interrupts_beside(raised.as_ref());
        if std::process::id() != process {
            // A handler has forked. The worker and both descriptors are the parent's.
            std::mem::forget(worker);
            return Err(fork_error(raised, thrown));
        }
        if let Err(error) = thrown {
            raised.get_or_insert(error);
            hurry.wake();
        }
        let mut fds = [
            PollFd::new(&interrupts, PollFlags::IN),
            PollFd::new(&*over, PollFlags::IN),
        ];
        interrupts.without_gvl_unchecked(|| poll(&mut fds, None).map(drop));
        if !fds[1].revents().is_empty() {
            break;
        }
    }
    let stopped = worker.join().and_then(|stopped| stopped);
    for wake_fd in [hurry, over].into_iter().filter_map(Arc::into_inner) {
        wake_fd.give_back(ThreadKind::Other);
    }
    match raised {
        None => stopped.map_err(|panic| panic_error(&*panic)),
        Some(error) => Err(error),
    }
}

/// Stops something on this thread, because no other can be had, which is no reason to leave
/// processes behind. An interrupt that comes meanwhile waits until all is over.
fn stop_here<T>(
    interrupts: &Interrupts,
    policy: Stop,
    stopping: impl FnOnce(Stop, &WakeFd) -> T,
    hurry: &WakeFd,
) -> Result<T, Error> {
    let process = std::process::id();
    let mut stopping = Some(stopping);
    let mut raised = None;
    loop {
        interrupts.clear();
        let thrown = gvl::check_interrupts_beside(raised.as_ref());
        if std::process::id() != process {
            // A handler has forked. What is to be stopped is the parent's.
            return Err(fork_error(raised, thrown));
        }
        if let Err(error) = thrown {
            raised.get_or_insert(error);
            hurry.wake();
        }
        let done = interrupts.without_gvl_unchecked(|| {
            let stopping = stopping.take();
            stopping.map(|stopping| stopping(policy, hurry))
        });
        match (done, raised) {
            (Some(Ok(Some(stopped))), None) => return Ok(stopped),
            (Some(Err(panic)), None) => return Err(panic_error(&*panic)),
            (Some(_), Some(error)) => return Err(error),
            // An interrupt came before it was begun.
            (_, still) => raised = still,
        }
    }
}

/// The error of a call in a fork that a signal handler has made inside of it: what the handler
/// has thrown, or that what the call waits for is the parent's.
pub(crate) fn fork_error(raised: Option<Error>, thrown: Result<(), Error>) -> Error {
    raised.or(thrown.err()).unwrap_or_else(|| {
        let error = Errno::CHILD.into();
        let words = "this is a fork of the process that waits, made meanwhile by a signal handler";
        system_error(&error, words.to_owned())
    })
}

/// Does `work`, which cannot be interrupted, on a thread of its own. What throws here calls
/// `leave`, which has `work` come to its end: the thread then drops the result.
pub(crate) fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    leave: impl FnOnce(),
) -> Result<T, Error> {
    let interrupts = Interrupts::watch()?;
    let over = Cancel::new().map_err(|error| cannot_wait(&error))?;
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::Builder::new().name("procwright-asleep".into());
    let worker_over = over.clone();
    let spawned = worker.spawn(move || {
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        worker_over.cancel();
    });
    spawned.map_err(|error| cannot_wait(&error))?;
    let process = std::process::id();
    loop {
        if let Ok(done) = receiver.try_recv() {
            return done.map_err(|panic| panic_error(&*panic));
        }
        let watched = [over.as_fd(), interrupts.as_fd()];
        let checked = interrupts.check();
        if std::process::id() != process {
            // A handler has forked. The thread is the parent's, and goes on there.
            return Err(fork_error(None, checked));
        }
        if let Err(thrown) = checked {
            leave();
            return Err(thrown);
        }
        interrupts.without_gvl_unchecked(|| poll_readable(&watched, Deadline::NEVER));
    }
}

fn cannot_wait(error: &io::Error) -> Error {
    system_error(error, format!("cannot wait: {error}"))
}
