//! Who is told by the clock how far a run is.

use std::time::{Duration, Instant};

use super::{Moment, TickHook};
use crate::time::{Deadline, Timeout};

/// No more often, whatever is asked: the run has to do something between.
const LEAST: Duration = Duration::from_millis(10);

pub(crate) struct Every<'a> {
    period: Duration,
    tell: TickHook<'a>,
    next: Deadline,
}

impl<'a> Every<'a> {
    pub(crate) fn new(period: Duration, tell: TickHook<'a>, now: Instant) -> Every<'a> {
        let period = period.max(LEAST);
        Every {
            period,
            tell,
            next: Timeout::after(period).starting(now),
        }
    }

    pub(crate) fn next(&self) -> Deadline {
        self.next
    }

    /// Tells, and what was missed meanwhile is not made up for.
    pub(crate) fn tell(&mut self, moment: Moment<'_>, now: Instant) {
        self.next = Timeout::after(self.period).starting(now);
        (self.tell)(moment);
    }
}
