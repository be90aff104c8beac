//! Monitors in event loops, and beside others in a wait set.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::Monitor;
use super::herald::Heralded;
use super::monitor::Source;
use super::unmarked::Unmarked;
use crate::wait::{Awaits, Waitable};

impl Monitor {
    /// A descriptor that is readable from the moment on from which the peer does not
    /// live any more, and for ever. It belongs to the monitor; nothing is to be read
    /// from it.
    ///
    /// Of a process it is its pidfd, which may be readable some microseconds before
    /// [`alive`](Monitor::alive) says no; [`confirm`](Monitor::confirm) knows then. Of a
    /// token it is made at the first call, and a thread of this process sleeps on the
    /// word from then on: one for every 127 of such monitors, or one for each where the kernel cannot do that (before Linux
    /// 5.16, under a sandbox that denies `futex_waitv`). It is told some microseconds
    /// later than [`alive`](Monitor::alive).
    ///
    /// ```
    /// use procwright::liveness::{Monitor, Token};
    /// use procwright::wait::{Event, WaitSet, Want};
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
    /// are no pidfds, which a [`WaitSet`](crate::WaitSet) can wait for all the same;
    /// and in a fork, if it was made before that: accept an invitation of its own
    /// there.
    pub fn readiness_fd(&self) -> io::Result<BorrowedFd<'_>> {
        match &self.source {
            Source::Process { process, .. } => process.pidfd().ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::Unsupported,
                    "no pidfd can be had of this process",
                )
            }),
            Source::Token { .. } => Ok(self.heralded()?.bell.as_fd()),
        }
    }

    fn heralded(&self) -> io::Result<&Heralded> {
        let unmarked = match &self.source {
            Source::Token { unmarked, .. } => unmarked.as_ref(),
            Source::Process { .. } => None,
        };
        let heralded = match self.heralded.get() {
            Some(heralded) => heralded,
            None => {
                let word = unmarked.map_or(&self.word, Unmarked::word);
                let guard = unmarked.is_none().then(|| self.guard()).flatten();
                let heralded = Heralded::new(word.twin(), guard)?;
                // If another thread was first, this one is not needed.
                self.heralded.get_or_init(|| heralded)
            }
        };
        let forked = || io::Error::new(io::ErrorKind::Unsupported, FORKED);
        if heralded.process != std::process::id() {
            return Err(forked());
        }
        if let Some(unmarked) = unmarked {
            unmarked.ring_too(&heralded.bell).map_err(|_| forked())?;
        }
        Ok(heralded)
    }
}

const FORKED: &str = "the readiness of this monitor is that of the process which was forked; \
                      accept an invitation in the fork";

/// Until the peer does not live any more.
impl Waitable for Monitor {
    fn awaits(&self) -> Awaits<'_> {
        match &self.source {
            Source::Process { process, .. } => process.awaits(),
            Source::Token { .. } => match self.readiness_fd() {
                Ok(bell) => Awaits::readable(bell),
                Err(error) => Awaits::impossible(&error, FORKED),
            },
        }
    }
}
