//! Sleeping until a peer does not live any more.

use std::time::{Duration, Instant};

use super::monitor::MonitorSource;
use super::unmarked::UnmarkedWatch;
use super::withdrawal::Withdrawal;
use super::{Monitor, State};
use procwright_os::robust::{says_alive, sleep};
use procwright_os::time::{Deadline, Timeout};
use procwright_process::wait::Event;

/// Length of a wait from which on the process of the holder is watched as well. A
/// shorter wait ends by itself and asks the system then.
const LONG: Duration = Duration::from_secs(1);

impl Monitor {
    /// Sleeps until the peer does not live any more, and says in what way; none
    /// after the timeout. Any number of threads and processes may wait.
    ///
    /// It sleeps on the word itself, of which the kernel wakes one sleeper, who wakes
    /// the others. So that nobody depends on what the others do, a thread of this
    /// process looks after waits of more than a second as well: it ends them when
    /// the process of the peer has ended, where that can be seen from here, whatever
    /// the word says then. ([`alive`](Monitor::alive) is the word alone; see
    /// [`confirm`](Monitor::confirm).)
    ///
    /// For event loops there is [`readiness_fd`](Monitor::readiness_fd), and a monitor
    /// can be put beside others into a [`WaitSet`](procwright_process::wait::WaitSet).
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Option<State> {
        self.wait_unless(&Withdrawal::new(), timeout)
    }

    /// [`wait`](Monitor::wait), which [`withdraw`](Monitor::withdraw) ends from another
    /// thread, as if the timeout had come. *But not the wait of a monitor
    /// [of a process](Monitor::of_process)*, which sleeps on no word.
    pub fn wait_unless(
        &self,
        withdrawal: &Withdrawal,
        timeout: impl Into<Timeout>,
    ) -> Option<State> {
        let _inside = withdrawal.enter();
        self.wait_until(timeout.into().starting(Instant::now()), withdrawal)
    }

    fn wait_until(&self, deadline: Deadline, withdrawal: &Withdrawal) -> Option<State> {
        if let MonitorSource::Process { process, .. } = &self.source {
            process.wait_until(Event::Exited, deadline).ok().flatten()?;
            self.has_ended();
            return Some(State::Died);
        }
        if let MonitorSource::Token {
            unmarked: Some(unmarked),
            ..
        } = &self.source
        {
            unmarked.wait(deadline, withdrawal);
            return Some(self.state()).filter(|state| *state != State::Alive);
        }
        if !self.alive() {
            return Some(self.state());
        }
        let is_long = deadline
            .remaining(Instant::now())
            .is_none_or(|left| left > LONG);
        let guard = is_long.then(|| self.guard()).flatten();
        if !guard.is_some_and(|guard| guard.wait_told(deadline, withdrawal)) {
            self.sleep(deadline, withdrawal);
        }
        Some(self.confirm()).filter(|state| *state != State::Alive)
    }

    fn sleep(&self, deadline: Deadline, withdrawal: &Withdrawal) {
        loop {
            let now = self.word.load();
            if !says_alive(now) || withdrawal.has_left() || deadline.reached(Instant::now()) {
                return;
            }
            sleep(self.word.word(), now, deadline);
        }
    }

    /// A watch of the holder's process, for as long as the monitor is there. It wakes
    /// those who sleep on the word when that process ends, whatever became of the word
    /// and of the one wake-up that the kernel gives.
    fn guard(&self) -> Option<&UnmarkedWatch> {
        let guard = match self.guard.get() {
            Some(guard) => guard,
            None => self.guard.get_or_insert(self.new_guard()),
        };
        guard.as_ref()
    }

    pub(super) fn new_guard(&self) -> Option<UnmarkedWatch> {
        let MonitorSource::Token { holder, .. } = &self.source else {
            return None;
        };
        UnmarkedWatch::new(self.word.twin(), Some(holder.as_ref()?)).ok()
    }

    /// Sleeps until the process of the peer is gone with all its threads, so that
    /// nothing of it writes any more; false after the timeout. None if its process
    /// cannot be seen from here.
    ///
    /// It waits for the end of the *process*. That goes on after a peer has released
    /// its token, and after an exec, which `died` tells of as well: where peers do
    /// that, give a timeout.
    pub fn wait_gone(&self, timeout: impl Into<Timeout>) -> Option<bool> {
        let process = match &self.source {
            MonitorSource::Token { holder, .. } => holder.as_ref()?,
            MonitorSource::Process { process, .. } => process,
        };
        let gone = process.wait_for(Event::Exited, timeout).ok()?.is_some();
        if gone {
            self.has_ended();
        }
        Some(gone)
    }
}
