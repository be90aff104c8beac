//! The blocks of memory, used again while they are warm.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::spool::overflow::Overflow;
use procwright_os::memory::{Block, Filler};

/// A block as it is used for much memory: as large as the largest pipe that we
/// ask for, so that one read can empty it.
const LARGEST_BLOCK: u64 = 256 * 1024;

/// Blocks that are kept though nothing is in them. A block of fresh memory costs
/// more to touch than to fill, so a stream that flows goes round in these; after
/// a burst all others go back to the system.
const KEPT: usize = 2;

/// The size of the blocks for this much memory.
pub(super) fn block_size(memory: u64) -> usize {
    let size = (memory / 16).clamp(Overflow::LEAST_MEMORY, LARGEST_BLOCK);
    usize::try_from(size.next_multiple_of(4096)).unwrap_or(4096)
}

#[derive(Debug)]
pub(super) struct BlockPool {
    /// The size of the largest block.
    size: usize,
    free: Vec<Arc<Block>>,
    /// The bytes of all blocks that exist.
    alive: Arc<AtomicUsize>,
    /// The most that those ever were.
    peak: usize,
    /// No more blocks are kept.
    closed: bool,
}

impl BlockPool {
    pub(super) fn new(size: usize) -> BlockPool {
        BlockPool {
            size,
            free: Vec::with_capacity(KEPT),
            alive: Arc::default(),
            peak: 0,
            closed: false,
        }
    }

    /// Takes out an empty block of at most `size` bytes: less where other queues need the
    /// memory.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(super) fn take(&mut self, size: usize) -> io::Result<Filler> {
        let size = size.min(self.size);
        // Other queues may have come since these were kept, and made the size less.
        self.free.retain(|block| block.size() == size);
        if let Some(filler) = self.free.pop().and_then(Filler::over) {
            return Ok(filler);
        }
        let block = Arc::new(Block::new(size, &self.alive)?);
        self.peak = self.peak.max(self.alive());
        Filler::over(block).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Takes back a block of which the caller wants no more. The last of those who have
    /// it gives it back for good. Called under the lock of the queue. Without it
    ///
    /// 1. the consumer and the spill thread have the last two references to one block;
    /// 2. both look, and each sees the other's;
    /// 3. both drop theirs, and a warm block goes back to the system.
    pub(super) fn give(&mut self, mut block: Arc<Block>) {
        // A block that is dropped here goes back to the system.
        if !self.closed && self.free.len() < KEPT && Arc::get_mut(&mut block).is_some() {
            self.free.push(block);
        }
    }

    /// Keeps no more blocks. Those that come back are to be dropped without the lock.
    pub(super) fn close(&mut self) -> Vec<Arc<Block>> {
        self.closed = true;
        std::mem::take(&mut self.free)
    }

    /// The bytes of the blocks that exist, those kept included.
    pub(super) fn alive(&self) -> usize {
        // Relaxed: a figure. No memory is reached by way of it.
        self.alive.load(Ordering::Relaxed)
    }

    /// The most bytes of blocks that ever existed.
    pub(super) fn peak(&self) -> usize {
        self.peak
    }
}
