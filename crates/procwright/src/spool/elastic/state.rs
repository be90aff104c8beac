//! The state of a queue: everything behind the lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::accounts::Accounts;
use super::entry::BlockSlice;
use super::figures::Figures;
use super::sides::{ConsumerState, ProducerState, SpillState};
use super::spill_files::SpillFiles;
use super::storage::{NextEntry, Storage};
use crate::spool::budget::LEAST_MEMORY;
use crate::spool::overflow::Overflow;
use procwright_os::memory::Block;

#[derive(Debug)]
pub(super) struct QueueState {
    pub(super) policy: Overflow,
    pub(super) storage: Storage,
    pub(super) accounts: Accounts,
    pub(super) producer: ProducerState,
    pub(super) consumer: ConsumerState,
    pub(super) spill: SpillState,
    /// Monitors that wait for new figures.
    pub(super) waiting_monitors: u32,
}

impl QueueState {
    pub(super) fn new(policy: Overflow, storage: Storage) -> QueueState {
        QueueState {
            policy,
            storage,
            accounts: Accounts::default(),
            producer: ProducerState::default(),
            consumer: ConsumerState::default(),
            spill: SpillState::default(),
            waiting_monitors: 0,
        }
    }

    /// True while more is wanted from the producer.
    pub(super) fn wants_more(&self) -> bool {
        !self.is_abandoned() && self.producer.finish.is_none()
    }

    /// True once one of the two sides wants nothing of what is there.
    pub(super) fn is_abandoned(&self) -> bool {
        self.consumer.is_closed || self.producer.has_abandoned
    }

    /// True once nothing more will move.
    pub(super) fn has_ended(&self) -> bool {
        self.is_abandoned() || (self.producer.finish.is_some() && self.waiting() == 0)
    }

    /// The bytes that wait for the consumer, those in hand included.
    pub(super) fn waiting(&self) -> u64 {
        self.storage.in_memory() + self.consumer.read_back + self.storage.on_disk()
    }

    /// Gives back what a queue has that will neither take nor give any more: a
    /// monitor keeps no memory, no descriptor and no share of the budget. The blocks
    /// are to be dropped without the lock.
    pub(super) fn release_memory(&mut self) -> Vec<Arc<Block>> {
        self.consumer.sleeps_on = None;
        self.storage.close()
    }

    // The producer's side.

    /// How many bytes may be kept more. After a refusal none until it pays: a
    /// producer that went on for every single byte that was taken would wake for
    /// each, and gaps of dropped bytes would be as many as bytes.
    pub(super) fn room(&mut self, now: Instant) -> u64 {
        let storage = &self.storage;
        let limit = storage.limit();
        let mut room = limit.saturating_sub(storage.in_memory());
        let mut worthwhile = (limit / 8).max(1);
        if room < worthwhile && storage.is_limited_by_share() && !storage.head.is_empty() {
            // The head stays in memory until it is read. It may be all that there
            // is, and more than the limit: it was put aside when the share was
            // larger. What comes needs some room to get to the disk nevertheless.
            let others = storage.in_memory() - storage.head_bytes();
            room = room.max(LEAST_MEMORY.saturating_sub(others));
            worthwhile = worthwhile.min(LEAST_MEMORY / 2);
        }
        if self.producer.refused_since.is_some() && room >= worthwhile {
            self.producer.refused += self.current_refusal(now);
            self.producer.refused_since = None;
        }
        match self.producer.refused_since {
            Some(_) => 0,
            None => room,
        }
    }

    /// Notes that there was no room.
    pub(super) fn refuse(&mut self, now: Instant) {
        let before = self.producer.refused_since;
        self.producer.refused_since = before.or(Some(now));
        if before.is_none()
            && self.policy.is_lossless()
            && let Some(full) = self.producer.full.upgrade()
        {
            full.ring();
        }
    }

    /// The time since which the producer has to wait.
    pub(super) fn held_since(&self) -> Option<Instant> {
        let holds =
            self.policy.is_lossless() && !self.consumer.is_closed && self.producer.finish.is_none();
        self.producer.refused_since.filter(|_| holds)
    }

    /// The time that the producer has been waiting now. A producer whose bytes are
    /// dropped does not wait.
    fn current_refusal(&self, now: Instant) -> Duration {
        match self.producer.refused_since {
            Some(since) if self.policy.is_lossless() => now.saturating_duration_since(since),
            _ => Duration::ZERO,
        }
    }

    /// True if a producer that was refused is to be rung.
    pub(super) fn may_resume_producer(&mut self, now: Instant) -> bool {
        self.producer.refused_since.is_some() && self.room(now) > 0 && self.policy.is_lossless()
    }

    /// Adds the bytes `start..end` of `block`. Returns the offset of the first byte
    /// that was ever dropped, if it was now.
    pub(super) fn push(
        &mut self,
        block: &Arc<Block>,
        start: usize,
        end: usize,
        now: Instant,
    ) -> Option<u64> {
        let n = (end - start) as u64;
        let has_dropped = self.accounts.dropped > 0;
        let oldest = (!has_dropped).then(|| self.accounts.position() + self.consumer.in_hand);
        self.accounts.count_kept(n, now);
        self.storage.push_slice(block, start, end);
        if matches!(self.policy, Overflow::DropOldest { .. }) {
            self.drop_oldest();
        }
        let waiting = self.waiting();
        self.accounts.note_waiting(waiting);
        self.storage.count_memory();
        oldest.filter(|_| self.accounts.dropped > 0)
    }

    /// Drops the oldest bytes until the rest is no more than may be kept. What the
    /// consumer has in hand stays: it may have been delivered already.
    fn drop_oldest(&mut self) {
        let waiting = self.storage.in_memory() - self.consumer.in_hand;
        let excess = waiting.saturating_sub(self.storage.limit());
        let dropped = self.storage.drop_oldest(excess);
        if dropped > 0 {
            self.accounts.dropped += dropped;
            self.forget_arrivals();
        }
    }

    /// Adds a gap of `n` bytes that have come and are not kept.
    pub(super) fn push_gap(&mut self, n: u64) {
        self.accounts.count_dropped(n);
        self.storage.push_gap(n);
    }

    // The consumer's side.

    /// Takes what comes next. A slice goes into the consumer's hand and counts as
    /// waiting until it is [consumed](QueueState::consume).
    pub(super) fn next(&mut self) -> NextEntry {
        if self.producer.has_abandoned {
            return NextEntry::End;
        }
        let next = self.storage.pop();
        match &next {
            NextEntry::Slice(slice) => self.consumer.in_hand = slice.len(),
            NextEntry::Gap(n) => self.accounts.pass_gap(*n),
            NextEntry::Empty if self.producer.finish.is_some() => return NextEntry::End,
            NextEntry::Disk(_) | NextEntry::Empty | NextEntry::End => {}
        }
        next
    }

    /// True if there is something for the consumer, the end included.
    pub(super) fn has_next(&self) -> bool {
        !self.storage.is_empty() || self.producer.finish.is_some() || self.producer.has_abandoned
    }

    /// The consumer is done with `n` bytes from memory.
    pub(super) fn consume(&mut self, n: u64) {
        self.consumer.in_hand -= n;
        self.accounts.went += n;
        self.storage.leave_memory(n);
        self.forget_arrivals();
    }

    /// The consumer is done with `n` bytes that were read back from disk.
    pub(super) fn consume_read_back(&mut self, n: u64) {
        self.consumer.read_back -= n;
        self.accounts.went += n;
        self.forget_arrivals();
    }

    fn forget_arrivals(&mut self) {
        // The oldest byte lies behind a gap if that is all that is before it.
        let gap = match self.consumer.in_hand {
            0 => self.storage.gap_before_tail(),
            _ => 0,
        };
        let waiting = self.waiting();
        self.accounts.forget_arrivals(waiting, gap);
    }

    /// Makes the descriptor that others poll readable or not: readable while there is
    /// something for the consumer, what it has in hand included, and for ever once it
    /// is closed.
    pub(super) fn update_readable(&mut self) {
        if self.consumer.is_polled() {
            let is_readable =
                self.consumer.holds() > 0 || self.consumer.is_closed || self.has_next();
            self.consumer.set_readable(is_readable);
        }
    }

    // The spill thread's side.

    /// The slice that goes to disk next, while there is more than is to stay in
    /// memory.
    pub(super) fn spill_candidate(&mut self) -> Option<BlockSlice> {
        if self.storage.in_memory() <= self.storage.low_water() {
            return None;
        }
        let is_filling = self.producer.is_filling;
        let is_writing = self.spill.is_writing;
        self.storage.spill_candidate(is_writing, is_filling)
    }

    /// The first `n` bytes of `slice` have been written to the disk's target.
    pub(super) fn move_to_disk(&mut self, slice: &BlockSlice, n: u64) {
        if self.storage.move_to_disk(slice, n) {
            self.accounts.spilled += n;
        }
    }

    // The monitors' side.

    pub(super) fn figures(&self, now: Instant) -> Figures {
        let (storage, accounts) = (&self.storage, &self.accounts);
        Figures {
            bytes_in: accounts.came,
            bytes_out: accounts.went,
            lag_bytes: self.waiting(),
            lag: accounts.lag(now),
            peak_bytes: accounts.peak(),
            memory_bytes: storage.pool.alive() as u64,
            memory_peak_bytes: storage.pool.peak() as u64,
            disk_bytes: storage.on_disk(),
            disk_peak_bytes: storage.disk.as_ref().map_or(0, SpillFiles::peak),
            spilled_bytes: accounts.spilled,
            dropped_bytes: accounts.dropped,
            lost_bytes: accounts.lost,
            refused: self.producer.refused + self.current_refusal(now),
        }
    }
}
