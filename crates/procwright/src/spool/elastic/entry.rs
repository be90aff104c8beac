//! The entries of a queue in memory: slices of blocks, and gaps.

use std::sync::Arc;

use procwright_os::memory::Block;

/// Bytes of a block, at least one.
#[derive(Clone, Debug)]
pub(super) struct BlockSlice {
    pub(super) block: Arc<Block>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl BlockSlice {
    pub(super) fn len(&self) -> u64 {
        (self.end - self.start) as u64
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.start..self.end]
    }
}

#[derive(Debug)]
pub(super) enum QueueEntry {
    Slice(BlockSlice),
    /// The number of bytes that were dropped here.
    Gap(u64),
}

impl QueueEntry {
    /// The bytes that lie in memory.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            QueueEntry::Slice(slice) => slice.len(),
            QueueEntry::Gap(_) => 0,
        }
    }
}
