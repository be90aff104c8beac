//! The right to clean up after a dead peer.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::monitor::MonitorSource;
use super::token::ledger;
use super::withdrawal::Withdrawal;
use super::{Error, Monitor, State};
use procwright_os::fork::ForkId;
use procwright_os::robust::{
    HeldRight, HolderThread, MAX_RIGHTS, RIGHT_SPENT, WAITERS, is_free, sleep, wake,
};
use procwright_os::time::Timeout;

/// What became of a [`Monitor::claim`].
#[derive(Debug)]
pub enum Claim {
    /// The right to clean up is ours, and nobody else's.
    Ours(Cleaner),
    /// Another watcher had the right all the time.
    Theirs,
    /// Another watcher has cleaned up.
    Done,
    /// The peer has not died: there is nothing to clean up.
    NotDied(State),
}

/// The right to clean up after a peer that has died, which nobody else has.
///
/// Dropping it gives it back, and another may have it. If this process dies, too,
/// or runs another program, exactly one of those who ask then gets it.
#[derive(Debug)]
#[must_use = "dropping it gives the right back"]
pub struct Cleaner {
    claimed: HeldRight,
    ledger: &'static HolderThread,
    process: ForkId,
    /// The word that the drop leaves: 0, or `RIGHT_SPENT`.
    outcome: u32,
}

impl Cleaner {
    /// Says that there is nothing left to clean up: from now on everybody who asks
    /// is told [`Claim::Done`]. Nothing happens in a fork of the process that has
    /// the right.
    pub fn done(mut self) {
        self.outcome = RIGHT_SPENT;
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        // The word is not mapped in a fork, and not the fork's to give.
        if self.process.is_current() {
            self.ledger.give(&self.claimed, self.outcome);
        }
    }
}

impl Monitor {
    /// Asks for the right to clean up after the peer, when it has died. Of all who
    /// were invited to watch it, in whatever processes, one has it at a time; the
    /// others sleep here until it is done, or given back by a drop or a death, or
    /// the timeout.
    ///
    /// It settles who cleans up, not when: a dead peer may not be quiet yet, see
    /// [`wait_gone`](Monitor::wait_gone). And it settles it among those who keep to
    /// it: whoever was invited could write to that memory, and so deny the right to
    /// the others. More than that nobody can do to anybody.
    ///
    /// ```
    /// use std::time::Duration;
    /// use procwright_liveness::{Claim, Monitor, State, Token};
    ///
    /// let token = Token::new()?;
    /// let monitor = Monitor::accept(token.invite()?)?;
    /// match monitor.claim(Duration::MAX)? {
    ///     Claim::Ours(right) => {
    ///         // Clean up.
    ///         right.done();
    ///     }
    ///     Claim::Theirs | Claim::Done => {}
    ///     Claim::NotDied(state) => assert_eq!(state, State::Alive),
    /// }
    /// # Ok::<(), procwright_liveness::Error>(())
    /// ```
    ///
    /// The first right of a process starts the thread that holds its tokens, too.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a monitor of a process, and where the kernel would
    /// not give the right to others when this process dies; [`Error::Full`] if this
    /// process has 512 such rights; [`Error::Io`] when there is no memory or thread
    /// left.
    ///
    /// # Blocking
    /// Until the timeout, if somebody else has the right. A timeout of 0 asks and
    /// does not wait.
    pub fn claim(&self, timeout: impl Into<Timeout>) -> Result<Claim, Error> {
        self.claim_unless(&Withdrawal::new(), timeout)
    }

    /// [`claim`](Monitor::claim), which [`withdraw`](Monitor::withdraw) ends from another
    /// thread: from then on it takes no right, and says [`Claim::Theirs`].
    ///
    /// # Errors
    /// As [`claim`](Monitor::claim).
    pub fn claim_unless(
        &self,
        withdrawal: &Withdrawal,
        timeout: impl Into<Timeout>,
    ) -> Result<Claim, Error> {
        let _inside = withdrawal.enter();
        let MonitorSource::Token { rights, cell, .. } = &self.source else {
            return Err(Error::unsupported(
                "only who watches a token can ask for the right to clean up: this monitor is of a \
                 process, and others who watch that have no place in which to agree",
            ));
        };
        match self.state() {
            State::Died => {}
            state => return Ok(Claim::NotDied(state)),
        }
        let deadline = timeout.into().starting(Instant::now());
        let word = rights.word(*cell);
        loop {
            let now = word.load(Ordering::Acquire);
            if now == RIGHT_SPENT {
                return Ok(Claim::Done);
            }
            if withdrawal.has_left() {
                return Ok(Claim::Theirs);
            }
            let ledger = ledger()?;
            if !ledger.marks() {
                return Err(Error::unsupported(
                    "the right to clean up cannot be had here: the kernel does not mark the words \
                     of this process, so nobody else would get the right if it died",
                ));
            }
            if is_free(now) {
                match ledger.claim(rights, *cell) {
                    // No other sleeper is kept waiting by this: the wake-up went to
                    // all of them.
                    Err(error) => return Err(refused(error)),
                    // Another watcher was first. A malicious one can be so again and
                    // again, so the deadline is looked at here, too.
                    Ok(None) if deadline.reached(Instant::now()) => return Ok(Claim::Theirs),
                    Ok(None) => continue,
                    Ok(Some(claimed)) => {
                        let right = Cleaner {
                            claimed,
                            ledger,
                            process: ForkId::current(),
                            outcome: 0,
                        };
                        // Left since the look above: the drop gives the right back.
                        return Ok(match withdrawal.has_left() {
                            true => Claim::Theirs,
                            false => Claim::Ours(right),
                        });
                    }
                }
            }
            if deadline.reached(Instant::now()) {
                return Ok(Claim::Theirs);
            }
            // The kernel wakes no sleeper of a word without this bit. Relaxed: the
            // Acquire load at the top of the loop orders what follows.
            if now & WAITERS == 0 {
                let _ =
                    word.compare_exchange(now, now | WAITERS, Ordering::Relaxed, Ordering::Relaxed);
                continue;
            }
            sleep(word, now, deadline);
        }
    }
}

impl Monitor {
    /// Ends the calls of other threads that were given this withdrawal, and those that are
    /// to come: a [`claim_unless`](Monitor::claim_unless) takes no right from here on, and a
    /// [`wait_unless`](Monitor::wait_unless) sleeps no more. Others who sleep on the same
    /// words wake as well, and sleep on.
    ///
    /// # Blocking
    /// Until those threads are out of their calls. It takes microseconds, and longer where
    /// they get no processor.
    pub fn withdraw(&self, withdrawal: &Withdrawal) {
        withdrawal.leave(|| {
            wake(self.word.word());
            if let MonitorSource::Token {
                rights,
                cell,
                unmarked,
                ..
            } = &self.source
            {
                wake(rights.word(*cell));
                if let Some(unmarked) = unmarked {
                    wake(unmarked.word().word());
                }
            }
        });
    }
}

fn refused(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::Unsupported => Error::Unsupported(error),
        io::ErrorKind::StorageFull => Error::Full(MAX_RIGHTS),
        _ => Error::Io(error),
    }
}
