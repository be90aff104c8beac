//! Monitors in event loops, and beside others in a wait set.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::Monitor;
use super::futex_watch::FutexWatch;
use super::monitor::MonitorSource;
use super::unmarked::UnmarkedWatch;
use procwright_process::wait::{Awaits, Waitable};

impl Monitor {
    /// A descriptor that is readable from the moment on from which the peer does not
    /// live any more, and for ever. It belongs to the monitor; nothing is to be read
    /// from it.
    ///
    /// For a process it is the pidfd, which may be readable some microseconds before
    /// [`alive`](Monitor::alive) says no; [`confirm`](Monitor::confirm) knows then.
    /// For a token it is made at the first call, and a thread of this process sleeps on
    /// the word from then on: one for every 127 of such monitors, or one for each where
    /// the kernel cannot do that (before Linux 5.16, under a sandbox that denies
    /// `futex_waitv`). It is told some microseconds later than
    /// [`alive`](Monitor::alive).
    ///
    /// ```
    /// use procwright_liveness::{Monitor, Token};
    /// use procwright_process::wait::{Event, WaitSet, Want};
    ///
    /// let (one, other) = (Token::new()?, Token::new()?);
    /// let mut set = WaitSet::new()?;
    /// set.add(Monitor::accept(one.invite()?)?, Event::Exited)?;
    /// set.add(Monitor::accept(other.invite()?)?, Event::Exited)?;
    /// drop(other);
    /// let waited = set.wait(Want::Any, None)?;
    /// assert!(!waited.ended[0].1.alive());
    /// assert_eq!(set.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no descriptor or thread is left. `Unsupported` of a process where there
    /// are no pidfds, which a [`WaitSet`](procwright_process::wait::WaitSet) can wait for all the same;
    /// and in a fork, if it was made before that: accept an invitation of its own
    /// there.
    pub fn readiness_fd(&self) -> io::Result<BorrowedFd<'_>> {
        match &self.source {
            MonitorSource::Process { process, .. } => process.readiness(),
            MonitorSource::Token { .. } => Ok(self.futex_watch()?.ended.as_fd()),
        }
    }

    fn futex_watch(&self) -> io::Result<&FutexWatch> {
        let unmarked = match &self.source {
            MonitorSource::Token { unmarked, .. } => unmarked.as_ref(),
            MonitorSource::Process { .. } => None,
        };
        let futex_watch = match self.futex_watch.get() {
            Some(futex_watch) => futex_watch,
            None => {
                let word = unmarked.map_or(&self.word, UnmarkedWatch::word);
                let guard = unmarked.is_none().then(|| self.new_guard()).flatten();
                let futex_watch = FutexWatch::new(word.twin(), guard)?;
                // `put` gives back what another thread put first.
                self.futex_watch.get_or_insert(futex_watch)
            }
        };
        let forked = || io::Error::new(io::ErrorKind::Unsupported, FORKED);
        if !futex_watch.process.is_current() {
            return Err(forked());
        }
        if let Some(unmarked) = unmarked {
            unmarked
                .ring_too(&futex_watch.ended)
                .map_err(|_| forked())?;
        }
        Ok(futex_watch)
    }
}

const FORKED: &str = "the readiness of this monitor is that of the process which was forked; \
                      accept an invitation in the fork";

/// Comes about when the peer does not live any more.
impl Waitable for Monitor {
    fn awaits(&self) -> Awaits<'_> {
        match &self.source {
            MonitorSource::Process { process, .. } => process.awaits(),
            MonitorSource::Token { .. } => match self.readiness_fd() {
                Ok(bell) => Awaits::readable(bell),
                Err(error) => Awaits::impossible(&error, FORKED),
            },
        }
    }
}
