//! The places in which the bytes of a queue lie: head, disk, tail.

use std::collections::VecDeque;
use std::sync::Arc;

use super::block_pool::{BlockPool, block_size};
use super::entry::{BlockSlice, QueueEntry};
use super::spill_files::{FileRange, SpillFiles};
use crate::spool::budget::Share;
use procwright_os::memory::Block;

/// The least block of a queue whose own policy allows for more. Small reads cost
/// more than they are worth.
const LEAST_BLOCK: usize = 16 * 1024;

/// The consumer takes from the head, then from the disk, then from the tail. The
/// producer adds to the tail.
#[derive(Debug)]
pub(super) struct Storage {
    /// The bytes that may lie in memory by the policy.
    own_limit: u64,
    /// The part of the budget of all queues that this one may take.
    share: Share,
    pub(super) pool: BlockPool,
    /// The bytes that came first when spilling began. They stay in memory.
    pub(super) head: VecDeque<QueueEntry>,
    pub(super) disk: Option<SpillFiles>,
    pub(super) tail: VecDeque<QueueEntry>,
    /// The bytes in head and tail, and in the consumer's hand from there.
    in_memory: u64,
}

/// The next thing for the consumer.
#[derive(Debug)]
pub(super) enum NextEntry {
    Slice(BlockSlice),
    Gap(u64),
    Disk(FileRange),
    Empty,
    End,
}

impl Storage {
    pub(super) fn new(
        own_limit: u64,
        share: Share,
        pool: BlockPool,
        disk: Option<SpillFiles>,
    ) -> Storage {
        Storage {
            own_limit,
            share,
            pool,
            head: VecDeque::new(),
            disk,
            tail: VecDeque::new(),
            in_memory: 0,
        }
    }

    pub(super) fn in_memory(&self) -> u64 {
        self.in_memory
    }

    pub(super) fn on_disk(&self) -> u64 {
        self.disk.as_ref().map_or(0, SpillFiles::unread)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.on_disk() == 0
    }

    /// The bytes that may lie in memory now.
    pub(super) fn limit(&self) -> u64 {
        self.share.memory(self.own_limit)
    }

    /// True if that is less than the policy allows.
    pub(super) fn is_limited_by_share(&self) -> bool {
        self.limit() < self.own_limit
    }

    /// Above this, bytes go to disk.
    pub(super) fn high_water(&self) -> u64 {
        // Asked once: the shares of others may change it between two looks.
        let limit = self.limit();
        limit - limit / 4
    }

    /// Down to this, once bytes go to disk.
    pub(super) fn low_water(&self) -> u64 {
        self.limit() / 2
    }

    /// The bytes that may lie on disk, and whether a share makes them less.
    pub(super) fn disk_limit(&self) -> (u64, bool) {
        let disk = self.disk.as_ref();
        disk.map_or((0, false), |disk| disk.limit(&self.share))
    }

    /// The size of the next block of memory.
    pub(super) fn next_block_size(&self) -> usize {
        let idle = self.share.idle_memory(self.own_limit);
        block_size(idle).max(LEAST_BLOCK)
    }

    pub(super) fn head_bytes(&self) -> u64 {
        self.head.iter().map(QueueEntry::bytes).sum()
    }

    fn tail_bytes(&self) -> u64 {
        self.tail.iter().map(QueueEntry::bytes).sum()
    }

    /// Tells the share of the disk whether there are files. Called after files were made
    /// or given back.
    pub(super) fn count_files(&mut self) {
        let has_files = self.disk.as_ref().is_some_and(SpillFiles::has_files);
        self.share.spilled(has_files);
    }

    /// `n` bytes have left the memory.
    pub(super) fn leave_memory(&mut self, n: u64) {
        self.in_memory -= n;
        self.share.keeps(self.in_memory);
    }

    /// Tells the share how much lies in memory, after bytes were added.
    pub(super) fn count_memory(&mut self) {
        self.share.keeps(self.in_memory);
    }

    /// Adds the bytes `start..end` of `block`.
    pub(super) fn push_slice(&mut self, block: &Arc<Block>, start: usize, end: usize) {
        self.in_memory += (end - start) as u64;
        match self.tail.back_mut() {
            Some(QueueEntry::Slice(last))
                if Arc::ptr_eq(&last.block, block) && last.end == start =>
            {
                last.end = end;
            }
            _ => self.tail.push_back(QueueEntry::Slice(BlockSlice {
                block: Arc::clone(block),
                start,
                end,
            })),
        }
    }

    /// Adds a gap of `n` bytes.
    pub(super) fn push_gap(&mut self, n: u64) {
        match self.tail.back_mut() {
            Some(QueueEntry::Gap(gap)) => *gap += n,
            _ => self.tail.push_back(QueueEntry::Gap(n)),
        }
    }

    /// Drops the `excess` oldest bytes of the tail, and leaves a gap in their place.
    /// How many were dropped.
    pub(super) fn drop_oldest(&mut self, mut excess: u64) -> u64 {
        let (mut gap, mut dropped) = (0, 0);
        while excess > 0 {
            match self.tail.pop_front() {
                Some(QueueEntry::Gap(n)) => gap += n,
                Some(QueueEntry::Slice(mut slice)) => {
                    let n = slice.len().min(excess);
                    slice.start += n as usize;
                    excess -= n;
                    gap += n;
                    dropped += n;
                    self.in_memory -= n;
                    if slice.start < slice.end {
                        self.tail.push_front(QueueEntry::Slice(slice));
                    } else {
                        self.pool.give(slice.block);
                    }
                }
                None => break,
            }
        }
        if gap > 0 {
            match self.tail.front_mut() {
                Some(QueueEntry::Gap(n)) => *n += gap,
                _ => self.tail.push_front(QueueEntry::Gap(gap)),
            }
        }
        dropped
    }

    /// The gap in front of the tail.
    pub(super) fn gap_before_tail(&self) -> u64 {
        match self.tail.front() {
            Some(QueueEntry::Gap(n)) => *n,
            _ => 0,
        }
    }

    /// Takes out what comes next. A range of the disk stays there.
    pub(super) fn pop(&mut self) -> NextEntry {
        let entry = match self.head.pop_front() {
            None => match self.disk.as_mut().and_then(SpillFiles::next) {
                Some(range) => return NextEntry::Disk(range),
                None => self.tail.pop_front(),
            },
            entry => entry,
        };
        match entry {
            Some(QueueEntry::Slice(slice)) => NextEntry::Slice(slice),
            Some(QueueEntry::Gap(n)) => NextEntry::Gap(n),
            None => NextEntry::Empty,
        }
    }

    /// The slice that goes to disk next. `is_writing` if one is on its way, and
    /// `is_filling` if the block of the last entry is still being filled.
    pub(super) fn spill_candidate(
        &mut self,
        is_writing: bool,
        is_filling: bool,
    ) -> Option<BlockSlice> {
        let nothing_there = self.disk.as_ref().is_some_and(|disk| disk.unread() == 0);
        if nothing_there && self.head.is_empty() && !is_writing {
            // Spilling begins: what the consumer will want first stays, so that the
            // consumer finds memory and no disk if it comes back soon.
            let mut kept = self.in_memory - self.tail_bytes();
            while kept < self.limit() / 4
                && self.tail.len() > 2
                && let Some(entry) = self.tail.pop_front()
            {
                kept += entry.bytes();
                self.head.push_back(entry);
            }
        }
        match self.tail.front() {
            Some(QueueEntry::Slice(slice))
                if self.tail.len() > 1 || slice.end == slice.block.size() || !is_filling =>
            {
                Some(slice.clone())
            }
            _ => None,
        }
    }

    /// The first `n` bytes of `slice` have been written to the disk's target. False
    /// if the consumer was faster and has them: then they do not count as written.
    pub(super) fn move_to_disk(&mut self, slice: &BlockSlice, n: u64) -> bool {
        let Some(QueueEntry::Slice(first)) = self.tail.front_mut() else {
            return false;
        };
        if !Arc::ptr_eq(&first.block, &slice.block) || first.start != slice.start {
            return false;
        }
        first.start += usize::try_from(n).unwrap_or(usize::MAX);
        let is_empty = first.start == first.end;
        if is_empty && let Some(QueueEntry::Slice(first)) = self.tail.pop_front() {
            self.pool.give(first.block);
        }
        self.leave_memory(n);
        if let Some(disk) = &mut self.disk {
            disk.wrote(n);
        }
        true
    }

    /// Gives back the share and the blocks that are kept for later. The blocks are to
    /// be dropped without the lock.
    pub(super) fn close(&mut self) -> Vec<Arc<Block>> {
        self.share = Share::alone();
        self.pool.close()
    }
}
