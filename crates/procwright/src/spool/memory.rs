//! Memory that grows while a stream is read into it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

pub use super::pages::Pages;
use super::pages::{HUGE, LARGE};
pub use procwright_os::memory::can_map;

/// A growing object that a stream is read into without a copy in between: a
/// `Vec<u8>` here, a `bytes` object in Python.
///
/// The implementation does the read itself, since only it knows how its memory
/// grows and which part of it may be written.
pub trait Memory: Send + 'static {
    /// An empty one.
    fn new() -> Self;

    /// Makes room for `more` bytes, and returns all the room that there is behind the bytes
    /// that it holds: its pages can be had before the read. Whoever returns less has them
    /// when they are written to.
    ///
    /// # Errors
    /// `OutOfMemory` if it cannot grow.
    fn reserve(&mut self, more: usize) -> io::Result<&mut [MaybeUninit<u8>]> {
        let _ = more;
        Ok(&mut [])
    }

    /// Reads once from `fd`, at most `max` bytes, to the end of what it holds,
    /// and returns how many. Makes room for `max` bytes first: a read that is
    /// shorter than what the pipe holds looks like a pipe that was not full.
    ///
    /// # Errors
    /// What `read(2)` answers; `OutOfMemory` if it cannot grow.
    fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize>;

    /// The bytes that were read.
    fn as_bytes(&self) -> &[u8];

    /// Adds a copy of `bytes`.
    ///
    /// # Errors
    /// `OutOfMemory` if it cannot grow.
    fn push(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Gives back what was reserved and not used. Called once, at the end.
    fn finish(&mut self);
}

/// Below this size memory grows fourfold.
const QUADRUPLES_BELOW: usize = 8 * 1024 * 1024;

/// From there to this size memory doubles, above it grows by a quarter: by then the
/// address space that nothing will use is what a refusal would be about.
const DOUBLES_BELOW: usize = 256 * 1024 * 1024;

/// The bytes that an allocator, and an object with a header such as Python's `bytes`,
/// put before and behind the data.
const HEADERS: usize = 64;

/// The bytes from which on a result stays in the block that it was read into. A large block
/// is a mapping of its own, also when it has been cut: a process may have 65,530 of these, and
/// a host may keep as many results. Less is copied at the end, in some microseconds.
pub const KEPT_IN_PLACE: usize = 128 * 1024;

/// The capacity that a block which holds `capacity` bytes is to be grown to when
/// it must hold `needed`, for every [`Memory`] alike.
///
/// Untouched memory is only an address, and the system's allocator moves large
/// blocks by their page tables, so neither the reserve nor the move costs what
/// it seems to. A large block fills whole huge pages together with the headers
/// around it: its last part is then no slower than the rest.
pub fn next_capacity(capacity: usize, needed: usize) -> usize {
    let grown = match capacity {
        0 => 0,
        1..QUADRUPLES_BELOW => (capacity * 4).max(LARGE - HEADERS),
        QUADRUPLES_BELOW..DOUBLES_BELOW => capacity * 2,
        _ => capacity.saturating_add(capacity / 4),
    };
    let wanted = grown.max(needed);
    let block = wanted.saturating_add(HEADERS);
    let rounded = match block > HUGE {
        true => block.checked_next_multiple_of(HUGE),
        false => block.checked_next_power_of_two(),
    };
    rounded.map_or(wanted, |block| block - HEADERS)
}

/// The capacity to ask for where [`next_capacity`] is refused. A quarter is added at least: a
/// process that takes all that there is has nothing left to tell of it.
pub fn least_capacity(capacity: usize, needed: usize) -> usize {
    needed.max(capacity.saturating_add(capacity / 4))
}

impl Memory for Vec<u8> {
    fn new() -> Vec<u8> {
        Vec::new()
    }

    fn reserve(&mut self, more: usize) -> io::Result<&mut [MaybeUninit<u8>]> {
        reserve(self, more)?;
        Ok(self.spare_capacity_mut())
    }

    fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        reserve(self, max)?;
        procwright_os::memory::read_into_spare(fd, self, max)
    }

    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        reserve(self, bytes.len())?;
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self) {
        give_back(self, 0);
    }
}

/// Gives back what was not used, but for `spare` bytes. See [`KEPT_IN_PLACE`].
pub fn give_back(memory: &mut Vec<u8>, spare: usize) {
    if memory.len() < KEPT_IN_PLACE && memory.capacity() >= LARGE / 2 {
        let mut copy = Vec::new();
        if copy.try_reserve_exact(memory.len() + spare).is_ok() {
            copy.extend_from_slice(memory);
            *memory = copy;
            return;
        }
    }
    memory.shrink_to(memory.len() + spare);
}

fn reserve(memory: &mut Vec<u8>, more: usize) -> io::Result<()> {
    let refused = || io::Error::from(io::ErrorKind::OutOfMemory);
    let needed = memory.len().checked_add(more).ok_or_else(refused)?;
    if memory.capacity() < needed {
        let capacity = next_capacity(memory.capacity(), needed);
        let least = least_capacity(memory.capacity(), needed);
        memory
            .try_reserve_exact(capacity - memory.len())
            .or_else(|_| memory.try_reserve_exact(least - memory.len()))
            .map_err(|_| refused())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_grow_fast_and_fill_huge_pages() {
        let pipe = 64 * 1024;
        // The first one comes from the allocator's heap, not from the system.
        assert!(next_capacity(0, pipe) < 128 * 1024);
        let mut capacity = 0;
        for _ in 0..40 {
            let grown = next_capacity(capacity, capacity + pipe);
            assert!(grown >= capacity + pipe && grown >= capacity + capacity / 4);
            assert!(grown < HUGE || (grown + HEADERS).is_multiple_of(HUGE));
            capacity = grown;
        }
        // Nothing overflows: the allocator is to refuse.
        assert!(next_capacity(usize::MAX - 5, usize::MAX) >= usize::MAX - HUGE);
    }
}
