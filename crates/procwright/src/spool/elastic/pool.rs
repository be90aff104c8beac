//! The blocks of memory, used again while they are warm.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys::memory::{Block, Filler};

/// Blocks that are kept though nothing is in them. A block of fresh memory costs
/// more to touch than to fill, so a stream that flows goes round in these; after
/// a burst all others go back to the system.
const KEPT: usize = 2;

#[derive(Debug)]
pub(super) struct Pool {
    /// The largest that a block may be.
    size: usize,
    free: Vec<Arc<Block>>,
    alive: Arc<AtomicUsize>,
    /// In bytes.
    peak: usize,
    /// No more will be filled.
    closed: bool,
}

impl Pool {
    pub(super) fn new(size: usize) -> Pool {
        Pool {
            size,
            free: Vec::with_capacity(KEPT),
            alive: Arc::default(),
            peak: 0,
            closed: false,
        }
    }

    /// An empty block, of at most `size` bytes: others may need the memory.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(super) fn take(&mut self, size: usize) -> io::Result<Filler> {
        let size = size.min(self.size);
        // Others may have come since they were kept, and made it less.
        self.free.retain(|block| block.size() == size);
        if let Some(filler) = self.free.pop().and_then(Filler::over) {
            return Ok(filler);
        }
        let block = Arc::new(Block::new(size, &self.alive)?);
        self.peak = self.peak.max(self.alive());
        Filler::over(block).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Takes back a block of which the caller wants no more. The last one to
    /// give it back gives it for good. Under the lock, or two could each take
    /// the other for the last.
    pub(super) fn give(&mut self, mut block: Arc<Block>) {
        // Dropped here the memory goes back to the system.
        if !self.closed && self.free.len() < KEPT && Arc::get_mut(&mut block).is_some() {
            self.free.push(block);
        }
    }

    /// Keeps no more blocks; to be dropped without the lock.
    pub(super) fn close(&mut self) -> Vec<Arc<Block>> {
        self.closed = true;
        std::mem::take(&mut self.free)
    }

    /// The bytes of the blocks that exist, those kept included.
    pub(super) fn alive(&self) -> usize {
        self.alive.load(Ordering::Relaxed)
    }

    /// The most that there ever were.
    pub(super) fn peak(&self) -> usize {
        self.peak
    }
}
