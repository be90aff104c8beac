//! A block of memory that one thread fills while others read what is filled.
//!
//! A block is only appended to until the filler has the only reference. Published
//! bytes never change under a reader, and bytes that are being written were never
//! published. So filling and reading need no lock between them.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// Memory straight from the system, all of which goes back when it is dropped. An
/// allocator would keep a part of it after a burst, and how much could not be told.
#[doc(alias = "mmap")]
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    size: usize,
    /// Number of bytes that are published and will not change.
    filled: AtomicUsize,
    /// Bytes of all blocks that count here.
    alive: Arc<AtomicUsize>,
}

// SAFETY: a block owns its mapping. Through `&Block` only the published part is
// read, which is not written; the rest is written through the one `Filler` alone.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Maps an empty block of `size` bytes, not zero, that counts in `alive` while it
    /// exists.
    ///
    /// # Errors
    /// When the system has no memory.
    pub fn new(size: usize, alive: &Arc<AtomicUsize>) -> io::Result<Block> {
        // SAFETY: a fresh mapping at a place of the kernel's choice.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // Relaxed: a count for people, which orders nothing.
        alive.fetch_add(size, Ordering::Relaxed);
        Ok(Block {
            start,
            size,
            filled: AtomicUsize::new(0),
            alive: Arc::clone(alive),
        })
    }

    /// The number of bytes that it can hold.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes that have been published so far.
    pub fn bytes(&self) -> &[u8] {
        // Acquire, with the Release of `Filler::publish`: the bytes are seen that were
        // written before.
        let filled = self.filled.load(Ordering::Acquire);
        // SAFETY: the first `filled` bytes lie within the mapping, which lives
        // as long as `self`, are initialised (a fresh mapping is zero), and are
        // not written while a shared reference exists: `Filler::spare` begins
        // behind them, and `Filler::rewind` needs to be the only owner.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), filled) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it can outlive us.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.size) };
        self.alive.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// The right to fill a block; each block has one at most.
#[derive(Debug)]
pub struct Filler(Arc<Block>);

impl Filler {
    /// Begins to fill a block anew, if this is the only reference to it.
    pub fn over(block: Arc<Block>) -> Option<Filler> {
        let mut filler = Filler(block);
        filler.rewind().then_some(filler)
    }

    /// The part that may be written, with bytes left over from earlier.
    pub fn spare(&mut self) -> &mut [u8] {
        let filled = self.filled();
        // SAFETY: the range lies within the mapping and is initialised memory.
        // It is reachable through this filler alone, which is borrowed
        // exclusively: readers see only what lies in front of `filled`, and that
        // grows through `publish` alone, which needs this borrow to have ended.
        unsafe {
            std::slice::from_raw_parts_mut(self.0.start.as_ptr().add(filled), self.0.size - filled)
        }
    }

    /// Lets readers see the first `n` bytes of the spare part.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn publish(&mut self, n: usize) {
        let filled = self.filled();
        assert!(n <= self.0.size - filled, "more than the spare part");
        // Release, with the Acquire of `Block::bytes`.
        self.0.filled.store(filled + n, Ordering::Release);
    }

    /// The number of bytes that are published.
    pub fn filled(&self) -> usize {
        // Relaxed: this filler alone writes the number.
        self.0.filled.load(Ordering::Relaxed)
    }

    /// Starts again from the beginning, if this is the only reference to the block.
    pub fn rewind(&mut self) -> bool {
        match Arc::get_mut(&mut self.0) {
            Some(block) => {
                *block.filled.get_mut() = 0;
                true
            }
            None => false,
        }
    }

    /// The block, to be read.
    pub fn block(&self) -> &Arc<Block> {
        &self.0
    }

    /// Gives up the right to fill it.
    pub fn into_block(self) -> Arc<Block> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_stays_until_nobody_has_it() {
        let alive = Arc::default();
        let block = Arc::new(Block::new(4096, &alive).unwrap());
        let mut filler = Filler::over(block).unwrap();
        filler.spare()[..5].copy_from_slice(b"first");
        assert_eq!(filler.block().bytes(), b"");
        filler.publish(5);
        let reader = Arc::clone(filler.block());
        let seen = reader.bytes();
        filler.spare()[..6].copy_from_slice(b"second");
        filler.publish(6);
        assert_eq!((seen, reader.bytes()), (&b"first"[..], &b"firstsecond"[..]));
        assert!(!filler.rewind());
        assert!(Filler::over(Arc::clone(&reader)).is_none());
        drop(reader);
        assert!(filler.rewind());
        assert_eq!((filler.filled(), filler.spare().len()), (0, 4096));
        assert_eq!(alive.load(Ordering::Relaxed), 4096);
        drop(filler);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn one_thread_fills_while_another_reads() {
        let alive = Arc::default();
        let size = 1 << 16;
        let block = Arc::new(Block::new(size, &alive).unwrap());
        let mut filler = Filler::over(block).unwrap();
        let reader = Arc::clone(filler.block());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..size {
                    filler.spare()[0] = number as u8;
                    filler.publish(1);
                }
            });
            let mut seen = 0;
            while seen < size {
                let bytes = reader.bytes();
                for (number, byte) in bytes.iter().enumerate().skip(seen) {
                    assert_eq!(*byte, number as u8);
                }
                seen = bytes.len();
            }
        });
    }
}
