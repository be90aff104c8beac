//! The state of each side of a queue: of the producer, of the consumer and of the
//! spill thread.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::error::BoxError;
use procwright_os::wake::Wake;

/// How the producer finished.
#[derive(Debug)]
pub(super) enum Finish {
    /// The end of the stream.
    Whole,
    Failed(BoxError),
    /// More came than may be kept, by [`Overflow::Fail`](crate::Overflow::Fail).
    Overflowed(u64),
}

#[derive(Debug, Default)]
pub(super) struct ProducerState {
    /// The block of the last entry is still being filled.
    pub(super) is_filling: bool,
    /// The time since which the producer has been refused.
    pub(super) refused_since: Option<Instant>,
    /// The time of all refusals that are over.
    pub(super) refused: Duration,
    /// Rung when the producer has to wait, if a monitor asked for that.
    pub(super) full: Weak<Wake>,
    /// The offset of the first byte that was more than may be kept.
    pub(super) overflowed: Option<u64>,
    pub(super) finish: Option<Finish>,
    /// The end was seen, and all that came before was taken in.
    pub(super) is_whole: bool,
    /// Nothing of what is there is to be given out any more.
    pub(super) has_abandoned: bool,
}

#[derive(Debug, Default)]
pub(super) struct ConsumerState {
    /// Bytes in hand from memory.
    pub(super) in_hand: u64,
    /// Bytes in hand that were read back from disk.
    pub(super) read_back: u64,
    /// The consumer takes no more.
    pub(super) is_closed: bool,
    /// The time at which the consumer last looked for something or took it.
    pub(super) last_taken: Option<Instant>,
    /// The consumer sleeps, or is about to.
    pub(super) is_waiting: bool,
    /// The descriptor on which a waiting consumer sleeps, made when it first does. A condition
    /// variable is a futex, and a process has few buckets for those: to close one of
    /// 9,000 streams, each with a sleeper, took 400 µs, and takes 35 so, as it does
    /// with ten. The condition variable stays for when there is no descriptor left.
    pub(super) sleeps_on: Option<Arc<Wake>>,
    /// Readable while there is something to read, as long as somebody has it who has asked a
    /// closer for it. Streams that are over are kept for long, and hold no descriptor.
    readable: Weak<Wake>,
    /// `readable` is rung.
    is_readable: bool,
}

impl ConsumerState {
    /// The bytes in hand.
    pub(super) fn holds(&self) -> u64 {
        self.in_hand + self.read_back
    }

    /// The descriptor on which the consumer may sleep, none if there is none left.
    pub(super) fn wake_to_sleep_on(&mut self) -> Option<Arc<Wake>> {
        if self.sleeps_on.is_none() {
            self.sleeps_on = Wake::new().ok().map(Arc::new);
        }
        self.sleeps_on.clone()
    }

    /// The descriptor that others poll, if anybody does.
    pub(super) fn readable(&self) -> Option<Arc<Wake>> {
        self.readable.upgrade()
    }

    /// Whether anybody has that descriptor.
    pub(super) fn is_polled(&self) -> bool {
        self.readable.strong_count() > 0
    }

    /// Has others poll this one, which is silent.
    pub(super) fn begin_readable(&mut self, readable: &Arc<Wake>) {
        self.readable = Arc::downgrade(readable);
        self.is_readable = false;
    }

    /// Rings or silences the descriptor that others poll, if it says otherwise.
    pub(super) fn set_readable(&mut self, is_readable: bool) {
        let Some(readable) = self.readable.upgrade() else {
            return;
        };
        if is_readable != std::mem::replace(&mut self.is_readable, is_readable) {
            match is_readable {
                true => readable.ring(),
                false => readable.silence(),
            }
        }
    }
}

/// The thing that the spill thread waits for. The thread that brings it sets "nothing" and
/// notifies, so that nothing else wakes the spill thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum SpillWaits {
    #[default]
    Nothing,
    /// More bytes than the memory is to hold.
    Work,
    /// Room on the disk.
    Room,
}

#[derive(Debug, Default)]
pub(super) struct SpillState {
    /// The thread exists, or is about to be started.
    pub(super) is_running: bool,
    pub(super) waits: SpillWaits,
    /// A file is being written, without the lock.
    pub(super) is_writing: bool,
    /// The latest attempt failed: no other before this.
    pub(super) retry_at: Option<Instant>,
    /// The time at which an attempt failed.
    pub(super) failed_at: Option<Instant>,
    /// The first spill was told.
    pub(super) has_told: bool,
}
