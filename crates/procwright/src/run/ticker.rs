//! Hooks that the clock calls.

use std::time::{Duration, Instant};

use procwright_os::time::{Deadline, Timeout};

/// The least time between two calls, whatever is asked for: who is watched has to do
/// something between them.
const LEAST: Duration = Duration::from_millis(10);

/// A hook, and when it is to be called.
pub(super) struct Ticker<H> {
    period: Duration,
    hook: H,
    next: Deadline,
}

impl<H> Ticker<H> {
    pub(super) fn new(period: Duration, hook: H, now: Instant) -> Ticker<H> {
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

    /// The hook, if it is time to call it. Calls that were missed meanwhile are not made up
    /// for.
    pub(super) fn due(&mut self, now: Instant) -> Option<&mut H> {
        if !self.next.reached(now) {
            return None;
        }
        self.next = Timeout::after(self.period).starting(now);
        Some(&mut self.hook)
    }
}
