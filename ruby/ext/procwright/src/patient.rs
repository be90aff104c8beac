//! Blocking without Ruby's lock, and with its interrupts.

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

use crate::errors::{panicked, system};
use crate::gvl::{self, Bell, Panic, Place};

/// A bell for as long as somebody waits.
pub(crate) struct Ring {
    bell: Option<Bell>,
    place: Place,
}

impl Ring {
    pub(crate) fn take() -> Result<Ring, Error> {
        let place = Place::here();
        match Bell::take(place) {
            Ok(bell) => Ok(Ring {
                bell: Some(bell),
                place,
            }),
            Err(error) => Err(system(&error, format!("cannot wait: {error}"))),
        }
    }

    fn bell(&self) -> &Bell {
        self.bell.as_ref().expect("it is given back by drop alone")
    }

    pub(crate) fn ring(&self) {
        self.bell().ring();
    }

    pub(crate) fn silence(&self) {
        self.bell().silence();
    }

    /// Looks for interrupts. Who comes after that finds it rung.
    ///
    /// # Errors
    /// What an interrupt has thrown.
    pub(crate) fn hear(&self) -> Result<(), Error> {
        // In this order: who comes after the look finds us about to wait.
        self.silence();
        gvl::check()
    }

    /// Looks for interrupts, and then does `work` without the lock. None if one came
    /// in between.
    ///
    /// # Errors
    /// What an interrupt has thrown.
    pub(crate) fn unlocked<T>(
        &self,
        work: impl FnOnce() -> T,
    ) -> Result<Option<Result<T, Panic>>, Error> {
        self.hear()?;
        Ok(gvl::unlocked(self.bell(), work))
    }

    /// The same for who has looked.
    pub(crate) fn unlocked_now<T>(&self, work: impl FnOnce() -> T) -> Option<Result<T, Panic>> {
        gvl::unlocked(self.bell(), work)
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell().as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Some(bell) = self.bell.take() {
            bell.give_back(self.place);
        }
    }
}

/// Runs `operation` until it is done, without the lock. If an interrupt throws
/// something, that is the outer error, and the operation was not done. It has to be
/// one that can be taken up again.
pub(crate) fn patiently<T>(
    deadline: Deadline,
    mut operation: impl FnMut(Patience<'_>) -> io::Result<T>,
) -> Result<io::Result<T>, Error> {
    let ring = Ring::take()?;
    loop {
        let patience = Patience::until(deadline).or_readable(ring.as_fd());
        match ring.unlocked(|| operation(patience))? {
            None => {}
            Some(Err(panic)) => return Err(panicked(&*panic)),
            Some(Ok(Err(error))) if error.kind() == io::ErrorKind::Interrupted => {}
            Some(Ok(done)) => return Ok(done),
        }
    }
}

/// The same for what is there mostly: tried once with the lock, which costs less than
/// to let go of it.
pub(crate) fn at_once_or_patiently<T>(
    deadline: Deadline,
    mut operation: impl FnMut(Patience<'_>) -> io::Result<T>,
) -> Result<io::Result<T>, Error> {
    match operation(now()) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => patiently(deadline, operation),
        done => Ok(done),
    }
}

/// Sleeps until one of them is readable, or until then.
pub(crate) fn until_readable(descriptors: &[BorrowedFd<'_>], deadline: Deadline) {
    let watched = descriptors.iter();
    let mut watched: Vec<_> = watched
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let left = deadline.remaining(Instant::now());
    // So long that it does not fit is for ever.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    // A signal ends it as well: whoever sleeps looks again in any case.
    let _ = poll(&mut watched, left.as_ref());
}

/// For loops that go on as long as there is something: it must not keep out who has to
/// be heard.
///
/// # Errors
/// `Interrupted`.
pub(crate) fn heard(patience: Patience<'_>) -> io::Result<()> {
    let Some(fd) = patience.interrupt() else {
        return Ok(());
    };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec::default())) {
        Ok(0) | Err(_) => Ok(()),
        Ok(_) => Err(io::ErrorKind::Interrupted.into()),
    }
}

/// The patience of who does not wait.
pub(crate) fn now<'a>() -> Patience<'a> {
    Patience::until(Deadline::at(Instant::now()))
}

/// Has a run pause whenever its ring is rung: its thread then looks what there is.
pub(crate) struct Pauses<'a>(pub(crate) &'a Ring);

impl Watch for Pauses<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn ready(&mut self, _moment: Moment<'_>) -> Result<Demand, BoxError> {
        self.0.silence();
        Ok(Demand::Pause)
    }
}

/// Stops something. Whatever interrupts that ends the grace, and is the error when all is
/// over: nothing is left as it was.
///
/// `stopping` is on a thread of its own, since it cannot be left in the middle. It gets
/// the policy and a descriptor that is readable once there is no more grace. *Not one that
/// a scope waits for*: a fork, which a signal handler can make, has not that thread.
pub(crate) fn uninterrupted<T: Send + 'static>(
    policy: Stop,
    stopping: impl FnOnce(Stop, &Bell) -> T + Send + 'static,
) -> Result<T, Error> {
    let ring = Ring::take()?;
    let refused = |error: io::Error| system(&error, format!("cannot wait: {error}"));
    let hurry = Arc::new(Bell::take(Place::Other).map_err(refused)?);
    let over = Arc::new(Bell::take(Place::Other).map_err(refused)?);
    hurry.silence();
    over.silence();
    let worker = {
        let (hurry, over) = (Arc::clone(&hurry), Arc::clone(&over));
        std::thread::Builder::new()
            .name("procwright-stop".into())
            .spawn(move || {
                let stopped = catch_unwind(AssertUnwindSafe(|| stopping(policy, &hurry)));
                over.ring();
                stopped
            })
            .map_err(refused)?
    };
    let process = std::process::id();
    let mut raised = None;
    while !worker.is_finished() {
        ring.silence();
        let thrown = gvl::check_beside(raised.as_ref());
        if std::process::id() != process {
            // What is thrown here is not to be heard over there, and the bells are theirs.
            std::mem::forget(worker);
            return Err(in_fork(raised, thrown));
        }
        if let Err(error) = thrown {
            raised.get_or_insert(error);
            hurry.ring();
        }
        let mut fds = [
            PollFd::new(&ring, PollFlags::IN),
            PollFd::new(&*over, PollFlags::IN),
        ];
        ring.unlocked_now(|| poll(&mut fds, None).map(drop));
        if !fds[1].revents().is_empty() {
            break;
        }
    }
    let stopped = worker.join().and_then(|stopped| stopped);
    for bell in [hurry, over].into_iter().filter_map(Arc::into_inner) {
        bell.give_back(Place::Other);
    }
    match raised {
        None => stopped.map_err(|panic| panicked(&*panic)),
        Some(error) => Err(error),
    }
}

/// What leaves a call in a fork that a signal handler or a hook has made in it: what that
/// has thrown, or that the program is the other's.
pub(crate) fn in_fork(raised: Option<Error>, thrown: Result<(), Error>) -> Error {
    raised.or(thrown.err()).unwrap_or_else(|| {
        let error = Errno::CHILD.into();
        let words = "the program is that of the process that this one was forked from meanwhile";
        system(&error, words.to_owned())
    })
}

/// Does `work`, which nothing interrupts, on a thread of its own. What interrupts us leaves
/// that behind: what it gets is then dropped there.
pub(crate) fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let ring = Ring::take()?;
    let refused = |error: io::Error| system(&error, format!("cannot wait: {error}"));
    let over = Cancel::new().map_err(refused)?;
    let (give, take) = mpsc::channel();
    let worker = std::thread::Builder::new().name("procwright-asleep".into());
    let tell = over.clone();
    let spawned = worker.spawn(move || {
        let _ = give.send(catch_unwind(AssertUnwindSafe(work)));
        tell.cancel();
    });
    spawned.map_err(refused)?;
    loop {
        if let Ok(done) = take.try_recv() {
            return done.map_err(|panic| panicked(&*panic));
        }
        ring.unlocked(|| until_readable(&[over.as_fd(), ring.as_fd()], Deadline::NEVER))?;
    }
}
