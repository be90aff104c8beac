//! Sleeping until a peer does not live any more.

use std::time::Instant;

use super::monitor::{Source, says_alive};
use super::{Monitor, State};
use crate::sys::robust::{sleep, wake};
use crate::time::{Deadline, Timeout};
use crate::wait::Event;

impl Monitor {
    /// Sleeps until the peer does not live any more, and says in what way; none
    /// after the timeout. Any number of threads and processes may wait.
    ///
    /// For event loops, and beside others in a [`WaitSet`](crate::WaitSet), wait for
    /// the [`process`](Monitor::process).
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Option<State> {
        self.wait_until(timeout.into().starting(Instant::now()))
    }

    fn wait_until(&self, deadline: Deadline) -> Option<State> {
        if let Source::Process { process, .. } = &self.source {
            process.wait_until(Event::Exited, deadline).ok().flatten()?;
            self.has_ended();
            return Some(State::Died);
        }
        if let Source::Token {
            unmarked: Some(unmarked),
            ..
        } = &self.source
        {
            unmarked.wait(deadline);
            return Some(self.state()).filter(|state| *state != State::Alive);
        }
        loop {
            let now = self.word.load();
            if !says_alive(now) {
                // The kernel wakes one of those who sleep on a dead holder's word,
                // and that one wakes the others.
                wake(self.word.word());
                return Some(self.state());
            }
            if deadline.reached(Instant::now()) {
                return None;
            }
            sleep(self.word.word(), now, deadline);
        }
    }

    /// Sleeps until the process of the peer is gone with all its threads, so that
    /// nothing of it writes any more; false after the timeout. None if its process
    /// cannot be seen from here.
    pub fn wait_gone(&self, timeout: impl Into<Timeout>) -> Option<bool> {
        let process = match &self.source {
            Source::Token { holder, .. } => holder.as_ref()?,
            Source::Process { process, .. } => process,
        };
        let gone = process.wait_for(Event::Exited, timeout).ok()?.is_some();
        if gone {
            self.has_ended();
        }
        Some(gone)
    }
}
