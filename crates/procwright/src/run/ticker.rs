//! The hook that the clock calls.

use std::time::{Duration, Instant};

use super::hooks::TickHook;
use super::watch::Moment;
use procwright_os::time::{Deadline, Timeout};

/// The least time between two calls, whatever is asked for: the run has to do
/// something between them.
const LEAST: Duration = Duration::from_millis(10);

/// A hook, and when it is to be called.
pub(super) struct Ticker<'a> {
    period: Duration,
    hook: TickHook<'a>,
    next: Deadline,
}

impl<'a> Ticker<'a> {
    pub(super) fn new(period: Duration, hook: TickHook<'a>, now: Instant) -> Ticker<'a> {
        let period = period.max(LEAST);
        Ticker {
            period,
            hook,
            next: Timeout::after(period).starting(now),
        }
    }

    pub(super) fn next(&self) -> Deadline {
        self.next
    }

    /// Calls the hook. Calls that were missed meanwhile are not made up for.
    pub(super) fn tick(&mut self, moment: Moment<'_>, now: Instant) {
        self.next = Timeout::after(self.period).starting(now);
        (self.hook)(moment);
    }
}
