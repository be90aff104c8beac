//! Two streams that come faster than one thread can take them.

use std::time::{Duration, Instant};

use crate::std_stream::PerStream;

/// The bytes that both streams must have carried before each judgement.
const VOLUME: u64 = 1024 * 1024;

/// Measured over the time in which each stream carries [`VOLUME`].
///
/// Bytes in both pipes at each look would be no measure: two writers that share the
/// other processor take turns, and the one that is not running has an empty pipe, while
/// the reader never gets to rest.
#[derive(Debug)]
pub(super) struct Saturation {
    since: Instant,
    bytes: PerStream<u64>,
    asleep: Duration,
}

impl Saturation {
    pub(super) fn new(bytes: PerStream<u64>, now: Instant) -> Saturation {
        Saturation {
            since: now,
            bytes,
            asleep: Duration::ZERO,
        }
    }

    /// Adds a time in which the thread had nothing to read.
    pub(super) fn slept(&mut self, duration: Duration) {
        self.asleep += duration;
    }

    /// True if the thread was busy for most of the time in which both streams carried
    /// volume. `bytes` is what each has carried in all.
    pub(super) fn is_reached(&mut self, bytes: PerStream<u64>, now: Instant) -> bool {
        let carried = bytes.zip(self.bytes).map(|(now, before)| now - before);
        if carried.stdout.min(carried.stderr) < VOLUME {
            return false;
        }
        let elapsed = now.saturating_duration_since(self.since);
        let busy = self.asleep < elapsed / 2;
        *self = Saturation::new(bytes, now);
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_floods_are_too_much_and_one_or_a_slow_pair_is_not() {
        let start = Instant::now();
        let both = |stdout, stderr| PerStream::new(stdout * VOLUME, stderr * VOLUME);
        let at = |ms| start + Duration::from_millis(ms);
        let mut saturation = Saturation::new(PerStream::default(), start);
        assert!(!saturation.is_reached(both(50, 0), at(10)), "only one");
        assert!(saturation.is_reached(both(51, 1), at(20)));
        // The count begins anew here.
        assert!(!saturation.is_reached(both(52, 1), at(30)));
        saturation.slept(Duration::from_millis(60));
        assert!(!saturation.is_reached(both(53, 2), at(120)));
        assert!(saturation.is_reached(both(54, 3), at(130)));
    }
}
