//! The accounts of every byte that came into a queue.

use std::time::{Duration, Instant};

use super::arrivals::ArrivalTimes;

/// Counters of bytes. Each byte that came has gone, waits, was dropped or was lost:
/// `came = went + waiting + dropped + lost`.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// Bytes from the producer.
    pub(super) came: u64,
    /// Bytes that the consumer is done with.
    pub(super) went: u64,
    /// Bytes that the policy dropped.
    pub(super) dropped: u64,
    /// Dropped bytes in front of the consumer's place, whose gaps it knows.
    passed: u64,
    /// Bytes that were on disk and could not be read.
    pub(super) lost: u64,
    /// Bytes that went to disk.
    pub(super) spilled: u64,
    /// The most bytes that ever waited.
    peak: u64,
    arrivals: ArrivalTimes,
}

impl Accounts {
    /// How far into the stream the consumer has come: the offset of its next
    /// byte, or of the gap in front of it.
    pub(super) fn position(&self) -> u64 {
        self.went + self.lost + self.passed
    }

    /// Counts `n` bytes that are kept.
    pub(super) fn count_kept(&mut self, n: u64, now: Instant) {
        self.arrivals.came(self.came, now);
        self.came += n;
    }

    /// Counts `n` bytes that are dropped before they were kept.
    pub(super) fn count_dropped(&mut self, n: u64) {
        self.came += n;
        self.dropped += n;
    }

    /// The consumer has been told of a gap of `n` bytes.
    pub(super) fn pass_gap(&mut self, n: u64) {
        self.passed += n;
    }

    pub(super) fn note_waiting(&mut self, waiting: u64) {
        self.peak = self.peak.max(waiting);
    }

    /// Forgets the times of the bytes before the consumer's place. `gap` dropped
    /// bytes lie between that and the oldest byte of the `waiting` ones.
    pub(super) fn forget_arrivals(&mut self, waiting: u64, gap: u64) {
        match waiting {
            0 => self.arrivals.clear(),
            _ => self.arrivals.went(self.position() + gap),
        }
    }

    /// The time that the oldest byte has been waiting.
    pub(super) fn lag(&self, now: Instant) -> Duration {
        let oldest = self.arrivals.oldest();
        oldest.map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }

    /// The most bytes that ever waited.
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }
}
