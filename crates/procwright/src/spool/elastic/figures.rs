//! Figures of a queue.

use std::time::Duration;

/// How a queue of bytes stands. Every byte that came in is out, waiting, dropped
/// or lost: `bytes_in = bytes_out + lag_bytes + dropped_bytes + lost_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Bytes that came in.
    pub bytes_in: u64,
    /// Bytes that the consumer is done with.
    pub bytes_out: u64,
    /// Bytes that wait for the consumer.
    pub lag_bytes: u64,
    /// The time that the oldest of them has been waiting: never too little, and
    /// too much by 10 ms or a hundredth of the greatest lag since it was last
    /// zero.
    pub lag: Duration,
    /// The most that ever waited.
    pub peak_bytes: u64,
    /// The memory that is taken now.
    pub memory_bytes: u64,
    /// The most memory that was ever taken.
    pub memory_peak_bytes: u64,
    /// Bytes that wait on disk.
    pub disk_bytes: u64,
    /// The most that ever waited there.
    pub disk_peak_bytes: u64,
    /// Bytes that ever went to disk.
    pub spilled_bytes: u64,
    /// Bytes that were dropped because the policy says so.
    pub dropped_bytes: u64,
    /// Bytes that were on disk and could not be read again.
    pub lost_bytes: u64,
    /// The time for which the producer was refused.
    pub refused: Duration,
}

impl Figures {
    /// What is counted in bytes once the queue is over, by the names that reports have for it.
    pub fn counts_at_the_end(&self) -> [(&'static str, u64); 9] {
        [
            ("bytes_in", self.bytes_in),
            ("bytes_out", self.bytes_out),
            ("lag_bytes", self.lag_bytes),
            ("peak_bytes", self.peak_bytes),
            ("memory_peak_bytes", self.memory_peak_bytes),
            ("disk_peak_bytes", self.disk_peak_bytes),
            ("spilled_bytes", self.spilled_bytes),
            ("dropped_bytes", self.dropped_bytes),
            ("lost_bytes", self.lost_bytes),
        ]
    }
}
