//! How long to wait between two looks: briefly while something happens, and so long at rest
//! that a watch which nobody needs costs next to nothing.

use std::time::Duration;

/// Shortest pause between two looks. Who reads a report does not wait for the next, and what
/// hangs goes on to do so.
const SHORTEST: Duration = Duration::from_secs(2);

/// Longest pause that a look is followed by: whoever watches is to see that it goes on.
const LONGEST: Duration = Duration::from_secs(60);

/// A pause is at least so many times as long as the processor time of the look before it: while
/// something happens looks take a tenth of a processor at most, at rest 0.8 % of it. What else
/// a watch does finds room below 1 %.
const WHILE_SOMETHING_HAPPENS: u32 = 10;
const AT_REST: u32 = 125;

/// How long to wait between two looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    asked_for: Option<Duration>,
    /// Processor time of the last look.
    cost: Duration,
    /// Looks that have found nothing new, since the last one that has.
    calm: i32,
}

impl Pace {
    /// Pauses as long as somebody has asked for, if so.
    pub(super) fn new(asked_for: Option<Duration>) -> Pace {
        Pace {
            asked_for,
            cost: Duration::ZERO,
            calm: 0,
        }
    }

    /// Notes what the last look has cost.
    pub(super) fn add_cost(&mut self, cost: Duration) {
        self.cost = cost;
    }

    /// Notes whether the last look has found something new.
    pub(super) fn add_news(&mut self, is_new: bool) {
        self.calm = match is_new {
            true => 0,
            false => self.calm.saturating_add(1),
        };
    }

    /// Notes that something happens.
    pub(super) fn hasten(&mut self) {
        self.calm = 0;
    }

    /// Time from the end of the last look to the begin of the next. Half as much longer after each
    /// look that has found nothing new.
    pub(super) fn pause(self) -> Duration {
        let times = |factor| self.cost.saturating_mul(factor).clamp(SHORTEST, LONGEST);
        let (first, rest) = (times(WHILE_SOMETHING_HAPPENS), times(AT_REST));
        self.asked_for.unwrap_or_else(|| {
            let grown = first.as_secs_f64() * 1.5_f64.powi(self.calm);
            Duration::from_secs_f64(grown.min(rest.as_secs_f64()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dear_look_is_followed_by_a_long_pause_at_rest() {
        let pause = |asked_for: Option<u64>, cost, calm| {
            let mut pace = Pace::new(asked_for.map(Duration::from_millis));
            pace.add_cost(Duration::from_millis(cost));
            for _ in 0..calm {
                pace.add_news(false);
            }
            pace.pause().as_millis()
        };
        assert_eq!(pause(None, 0, 0), 2000);
        assert_eq!(pause(None, 15, 9), 2000);
        // From the begin of something on to rest.
        assert_eq!(pause(None, 100, 0), 2000);
        assert_eq!(pause(None, 100, 1), 3000);
        assert_eq!(pause(None, 100, 2), 4500);
        assert_eq!(pause(None, 100, 9), 12_500);
        assert_eq!(pause(None, 1000, 0), 10_000);
        assert_eq!(pause(None, 100_000, 10_000), 60_000);
        // What was asked for is what happens.
        assert_eq!(pause(Some(100), 10_000, 9), 100);
        assert_eq!(pause(Some(90_000), 0, 0), 90_000);
    }

    #[test]
    fn a_key_brings_it_back() {
        let mut pace = Pace::new(None);
        pace.add_cost(Duration::from_millis(100));
        for _ in 0..1_000 {
            pace.add_news(false);
        }
        assert_eq!(pace.pause().as_millis(), 12_500);
        pace.hasten();
        assert_eq!(pace.pause().as_millis(), 2000);
    }
}
