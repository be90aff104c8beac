//! A map under way: an iterator of results.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::ended::Ended;
use super::error::{Error, StoppedBy};
use super::state::{Ending, Next, Progress, Shared};
use crate::spool::Memory;
use procwright_os::fork;
use procwright_os::poll::{self, Flags};
use procwright_os::time::{Deadline, Timeout};

/// A map under way, which [`Map::start`](super::Map::start) gives: an iterator of the results.
///
/// After the last result comes the error that ended the map, if one did. A cancel, a deadline
/// and [`Map::stop_after_failures`](super::Map::stop_after_failures) are no errors: they end the
/// iterator early, and [`Running::stopped_by`] tells.
///
/// Its drop ends the map: what runs is stopped, each command by its own
/// [`Stop`](crate::process::Stop), and the drop returns when all have ended, or were given up, as
/// by a run. The iterator of the commands may then still be inside its `next`; nobody waits for
/// that. In a fork of this process the drop does nothing, and there is
/// one more step, [`Error::Forked`].
///
/// For event loops [`Running::fd`] is readable when [`Running::try_next`] may have something.
pub struct Running<M: Memory = Vec<u8>> {
    shared: Arc<Shared<M>>,
    /// True if the end, or the error, has been given out.
    is_done: bool,
    process: u32,
}

impl<M: Memory> std::fmt::Debug for Running<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}

impl<M: Memory> Running<M> {
    pub(super) fn new(shared: Arc<Shared<M>>) -> Running<M> {
        Running {
            shared,
            is_done: false,
            process: fork::generation(),
        }
    }

    /// The next result if it comes within `timeout`; none if the time ran out.
    ///
    /// # Blocking
    /// Until then.
    pub fn next_within(&mut self, timeout: impl Into<Timeout>) -> Option<Step<M>> {
        let until = timeout.into().starting(std::time::Instant::now());
        self.next_before(until, None)
    }

    /// The next result; none once `interrupt` is readable: signals of a host, say.
    ///
    /// # Blocking
    /// Until then.
    pub fn next_unless(&mut self, interrupt: BorrowedFd<'_>) -> Option<Step<M>> {
        self.next_before(Deadline::NEVER, Some(interrupt))
    }

    /// The next result, or the end, if it is there at this moment. Once this has been asked and
    /// has nothing, [`Running::fd`] becomes readable when it is worth asking again. A deadline
    /// and a cancel are looked at by this call.
    pub fn try_next(&mut self) -> Option<Step<M>> {
        if self.is_done {
            return Some(Step::Over);
        }
        if fork::generation() != self.process {
            self.is_done = true;
            return Some(Step::Failed(Error::Forked));
        }
        // Silenced first: what comes behind the look rings again.
        self.shared.ready.silence();
        let step = match self.shared.look()? {
            Next::Ended(ended) => return Some(Step::Ended(ended)),
            Next::Failed(error) => Step::Failed(error),
            Next::Over => Step::Over,
        };
        self.is_done = true;
        self.shared.close();
        Some(step)
    }

    /// Descriptor that is readable when [`Running::try_next`] may have something.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.shared.ready.as_fd()
    }

    /// Takes the failure that has ended the map before its turn comes: in the order of the input
    /// ([`Map::ordered`](super::Map::ordered)) commands that were stopped for it may stand before
    /// it ([`Ended::cause`]). In its turn it comes once more, as
    /// [`Outcome::Taken`](super::Outcome::Taken). None if it has come, and of a map that no
    /// failure has ended.
    ///
    /// ```
    /// use procwright::Spec;
    /// use procwright::map::Map;
    /// use std::num::NonZero;
    ///
    /// let commands = [Spec::new(["sleep", "1000"]), Spec::new(["false"])];
    /// let map = Map::new(commands).parallel(2).ordered();
    /// let mut map = map.stop_after_failures(NonZero::<u64>::MIN).start()?;
    /// let first = map.next().unwrap()?;
    /// assert!(first.was_stopped() && first.cause == Some(1));
    /// assert_eq!(map.take_cause().unwrap().summary(), "false exited with code 1");
    /// # Ok::<(), procwright::map::Error>(())
    /// ```
    pub fn take_cause(&mut self) -> Option<Ended<M>> {
        match fork::generation() == self.process {
            true => self.shared.take_cause(),
            false => None,
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.shared.progress()
    }

    /// What has stopped it, if it did not come to its end by itself.
    pub fn stopped_by(&self) -> Option<StoppedBy> {
        self.shared.stopped_by()
    }

    /// A handle by which other threads can look at it, and end it.
    pub fn remote(&self) -> Remote<M> {
        Remote(Arc::clone(&self.shared))
    }

    fn next_before(
        &mut self,
        until: Deadline,
        interrupt: Option<BorrowedFd<'_>>,
    ) -> Option<Step<M>> {
        loop {
            if let Some(step) = self.try_next() {
                return Some(step);
            }
            if until.reached(std::time::Instant::now()) {
                return None;
            }
            if self.sleep(until, interrupt) {
                return None;
            }
        }
    }

    /// Sleeps until there may be something. Returns whether it was interrupted.
    fn sleep(&self, until: Deadline, interrupt: Option<BorrowedFd<'_>>) -> bool {
        let rules = &self.shared.rules;
        let ending = self.shared.ending();
        // A deadline that has come, and a cancel, stay so: they are looked at once.
        let until = match ending {
            Ending::None => until.min(rules.deadline),
            _ => until,
        };
        let mut fds = vec![poll::Fd::new(&self.shared.ready, Flags::IN)];
        fds.extend(interrupt.map(|fd| poll::Fd::from_borrowed_fd(fd, Flags::IN)));
        if let Some(cancel) = rules.cancel.as_ref().filter(|_| ending < Ending::Stop) {
            fds.push(poll::Fd::new(cancel, Flags::IN));
        }
        match poll::poll(&mut fds, until) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // No memory for the moment: nothing but another try helps.
            Err(_) => std::thread::yield_now(),
        }
        interrupt.is_some() && !fds[1].revents().is_empty()
    }
}

/// A handle on a map under way, by which other threads can look at it, and end it. It does not
/// keep the map from its end.
pub struct Remote<M: Memory = Vec<u8>>(Arc<Shared<M>>);

impl<M: Memory> Clone for Remote<M> {
    fn clone(&self) -> Remote<M> {
        Remote(Arc::clone(&self.0))
    }
}

impl<M: Memory> std::fmt::Debug for Remote<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

impl<M: Memory> Remote<M> {
    /// Starts nothing more. What runs goes on to its end.
    pub fn start_no_more(&self) {
        self.0.stop(Ending::NoMore, Some(StoppedBy::Cancel));
    }

    /// Starts nothing more, and stops what runs, each command by its own
    /// [`Stop`](crate::process::Stop). Returns at once.
    pub fn stop(&self) {
        self.0.stop(Ending::Stop, Some(StoppedBy::Cancel));
    }

    /// Starts nothing more, and kills what runs. Returns at once.
    pub fn kill(&self) {
        self.0.stop(Ending::Kill, Some(StoppedBy::Cancel));
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.0.progress()
    }

    /// How many commands may run at a time.
    pub fn parallel(&self) -> usize {
        self.0.rules.parallel
    }

    /// What has stopped it, if it did not come to its end by itself.
    pub fn stopped_by(&self) -> Option<StoppedBy> {
        self.0.stopped_by()
    }

    /// True if no command runs, and none will. Results may be left to be taken.
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

/// What an asked [`Running`] has.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step<M = Vec<u8>> {
    /// A command has ended.
    Ended(Ended<M>),
    /// The map has ended by an error of its own.
    Failed(Error),
    /// The map has ended, and all has been told.
    Over,
}

impl<M: Memory> Iterator for Running<M> {
    type Item = Result<Ended<M>, Error>;

    /// # Blocking
    /// Until a command has ended.
    fn next(&mut self) -> Option<Self::Item> {
        match self.next_before(Deadline::NEVER, None)? {
            Step::Ended(ended) => Some(Ok(ended)),
            Step::Failed(error) => Some(Err(error)),
            Step::Over => None,
        }
    }
}

impl<M: Memory> AsFd for Running<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

impl<M: Memory> Drop for Running<M> {
    fn drop(&mut self) {
        if fork::generation() != self.process {
            return;
        }
        self.shared.stop(Ending::Stop, None);
        loop {
            // Silenced first: what comes behind the look rings again.
            self.shared.ready.silence();
            if self.shared.is_over() {
                break;
            }
            let ready = poll::Fd::new(&self.shared.ready, Flags::IN);
            let _ = poll::wait_one(ready, Deadline::NEVER);
        }
        self.shared.close();
    }
}
