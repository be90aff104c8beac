//! The time at which each byte came, in bounded memory.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes that come this close together count as having come with the first.
const FINEST: Duration = Duration::from_millis(10);

/// The most marks that are kept.
const MOST: usize = 256;

/// A mark now and then: the offset of a byte and the time at which it came. Bytes up
/// to the next mark count as having come with it.
#[derive(Debug)]
pub(super) struct ArrivalTimes {
    marks: VecDeque<(u64, Instant)>,
    /// Least time between two marks.
    step: Duration,
}

impl Default for ArrivalTimes {
    fn default() -> ArrivalTimes {
        ArrivalTimes {
            marks: VecDeque::new(),
            step: FINEST,
        }
    }
}

impl ArrivalTimes {
    /// Bytes from the offset `from` on came at `now`.
    pub(super) fn came(&mut self, from: u64, now: Instant) {
        if let Some((_, last)) = self.marks.back()
            && now.saturating_duration_since(*last) < self.step
        {
            return;
        }
        if self.marks.len() == MOST {
            // Every second mark goes, and the first stays: an age that is told is
            // never too small. New marks come at the new distance, or the oldest
            // would become ever fewer.
            self.step *= 2;
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.marks.push_back((from, now));
    }

    /// Bytes before the offset `to` have gone.
    pub(super) fn went(&mut self, to: u64) {
        while self.marks.get(1).is_some_and(|(from, _)| *from <= to) {
            self.marks.pop_front();
        }
    }

    /// Forgets all: every byte has gone.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
        self.step = FINEST;
    }

    /// The time at which the oldest byte came, or a little earlier.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.marks.front().map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_never_too_small_and_memory_never_too_much() {
        let start = Instant::now();
        let mut marks = ArrivalTimes::default();
        // A byte a millisecond.
        let time = |byte: u64| start + Duration::from_millis(byte);
        for byte in 0..100_000 {
            marks.came(byte, time(byte));
            assert!(marks.marks.len() <= MOST);
        }
        for byte in 0..100_000 {
            marks.went(byte);
            let told = marks.oldest().unwrap();
            assert!(told <= time(byte));
            assert!(time(byte) - told < Duration::from_secs(4), "{byte}");
        }
        marks.clear();
        assert_eq!(marks.oldest(), None);
    }
}
