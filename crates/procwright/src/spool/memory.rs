//! Memory that grows while a stream is read into it.

use std::io;
use std::os::fd::BorrowedFd;

/// A growing object that a stream is read into without a copy in between: a
/// `Vec<u8>` here, a `bytes` object in Python.
///
/// The implementation does the read itself, since only it knows how its memory
/// grows and which part of it may be written.
pub trait Memory: Send + 'static {
    /// An empty one.
    fn new() -> Self;

    /// Reads once from `fd`, at most `max` bytes, to the end of what it holds,
    /// and returns how many.
    ///
    /// # Errors
    /// What `read(2)` answers; `OutOfMemory` if it cannot grow.
    fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize>;

    /// What it holds.
    fn as_bytes(&self) -> &[u8];

    /// Adds a copy of `bytes`.
    ///
    /// # Errors
    /// `OutOfMemory` if it cannot grow.
    fn push(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Gives back what was reserved and not used. Called once, at the end.
    fn finish(&mut self);
}

impl Memory for Vec<u8> {
    fn new() -> Vec<u8> {
        Vec::new()
    }

    fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        if let Some(capacity) = growth(self.len(), self.capacity(), max) {
            self.try_reserve_exact(capacity - self.len())
                .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            prefer_huge_pages(self.as_ptr(), self.capacity());
        }
        crate::sys::memory::read_into_spare(fd, self, max)
    }

    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.try_reserve(bytes.len())
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self) {
        self.shrink_to_fit();
    }
}

/// The first reservation: what an unasked pipe holds, and small enough to come
/// from the allocator's heap and not from the system.
const FIRST: usize = 64 * 1024;

/// Below this many bytes of room it is time to grow, whatever was asked for.
const LITTLE: usize = 4096;

/// From this size on a block is worth huge pages.
const HUGE_FROM: usize = 4 * 1024 * 1024;

const HUGE_PAGE: usize = 2 * 1024 * 1024;

/// Room for the allocator's own header, so that block and header together fill
/// whole huge pages.
const HEADER: usize = 64;

/// The capacity to grow to before a read of up to `max` bytes; none if the room
/// is good enough.
///
/// Doubling costs little: untouched memory is only an address, and the system's
/// allocator moves a large block by its page tables. What costs is the first
/// touch of each page, more than copying into it; huge pages make that 1.3 to
/// 1.7 times faster (2 x 1 GiB on Linux 6.18; see `docs/design.md`).
pub fn growth(length: usize, capacity: usize, max: usize) -> Option<usize> {
    let room = capacity - length;
    // A large block that is nearly full takes shorter reads rather than being
    // doubled for the last few bytes.
    let enough = room >= max || (room >= LITTLE && capacity >= max.saturating_mul(4));
    if enough {
        return None;
    }
    let doubled = capacity.saturating_mul(2).max(FIRST);
    if doubled < HUGE_FROM {
        return Some(doubled);
    }
    Some(doubled.next_multiple_of(HUGE_PAGE) - HEADER)
}

/// Asks the system for huge pages for a block that was just reserved or has just
/// grown, given as a whole. Does nothing for small ones. Only the speed changes.
///
/// # Platform
/// Linux with transparent huge pages set to `madvise` or `always`; nothing
/// happens elsewhere.
pub fn prefer_huge_pages(start: *const u8, capacity: usize) {
    if capacity >= HUGE_FROM - HEADER {
        crate::sys::memory::prefer_huge_pages(start, capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_doubles_from_a_pipeful_and_fills_huge_pages() {
        assert_eq!(growth(0, 0, 256 * 1024), Some(64 * 1024));
        assert_eq!(growth(0, 256 * 1024, 256 * 1024), None);
        let mut capacity = 64 * 1024;
        for _ in 0..20 {
            let grown = growth(capacity, capacity, 256 * 1024).unwrap();
            assert!(grown >= capacity + capacity / 2);
            assert!(grown < HUGE_FROM || (grown + HEADER).is_multiple_of(HUGE_PAGE));
            capacity = grown;
        }
        // Some room in a large block is used up first.
        assert_eq!(growth(capacity - 5000, capacity, 256 * 1024), None);
        assert!(growth(capacity - 100, capacity, 256 * 1024).is_some());
    }
}
