//! Whether two streams come faster than one thread can take them.

use std::time::{Duration, Instant};

/// What both streams must have carried before they are judged, each time.
const VOLUME: u64 = 1024 * 1024;

/// Measured over the time in which each stream carries [`VOLUME`].
///
/// That each has bytes whenever it is looked at would be no measure: two writers
/// that share the other processor take turns, and whichever is not running has an
/// empty pipe, while the reader never gets to rest.
#[derive(Debug)]
pub(super) struct Load {
    since: Instant,
    bytes: [u64; 2],
    asleep: Duration,
}

impl Load {
    pub(super) fn new(bytes: [u64; 2], now: Instant) -> Load {
        Load {
            since: now,
            bytes,
            asleep: Duration::ZERO,
        }
    }

    /// The thread had nothing to read for so long.
    pub(super) fn slept(&mut self, duration: Duration) {
        self.asleep += duration;
    }

    /// Whether the thread was busy for most of the time in which both streams
    /// carried volume. `bytes` is what each has carried in all.
    pub(super) fn is_too_much(&mut self, bytes: [u64; 2], now: Instant) -> bool {
        let carried = |i: usize| bytes[i] - self.bytes[i];
        if carried(0).min(carried(1)) < VOLUME {
            return false;
        }
        let elapsed = now.saturating_duration_since(self.since);
        let busy = self.asleep < elapsed / 2;
        *self = Load::new(bytes, now);
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_floods_are_too_much_and_one_or_a_slow_pair_is_not() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut load = Load::new([0, 0], start);
        assert!(!load.is_too_much([50 * VOLUME, 0], at(10)), "only one");
        assert!(load.is_too_much([51 * VOLUME, VOLUME], at(20)));
        // From here on it counts anew.
        assert!(!load.is_too_much([52 * VOLUME, VOLUME], at(30)));
        load.slept(Duration::from_millis(60));
        assert!(!load.is_too_much([53 * VOLUME, 2 * VOLUME], at(120)));
        assert!(load.is_too_much([54 * VOLUME, 3 * VOLUME], at(130)));
    }
}
