//! The memory of a capture, with its pages.

use std::io;
use std::os::fd::BorrowedFd;

use crate::spool::{LARGE, Memory, Pages};
use procwright_os::pipe;

/// The bytes in a pipe before its first read from which on the memory begins large. Most
/// programs have little to say, and then a block of the allocator's own heap is quicker.
const MUCH: u64 = 16 * 1024;

/// A [`Memory`] that gets its pages before it is written to.
#[derive(Debug)]
pub(crate) struct Kept<M> {
    memory: M,
    pages: Pages,
}

impl<M: Memory> Kept<M> {
    pub(super) fn new() -> Kept<M> {
        Kept {
            memory: M::new(),
            pages: Pages::default(),
        }
    }

    /// Reads once, like [`Memory::read_from`].
    pub(super) fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        let filled = self.memory.as_bytes().len();
        if filled == 0 && pipe::unread(fd).is_ok_and(|unread| unread >= MUCH) {
            // What begins in a small block is copied to a large one. Refused, it does so.
            let _ = self.memory.reserve(LARGE / 2);
        }
        let room = self.memory.reserve(max)?;
        // Nothing in the pipe may be its end, and the pages were had for nothing.
        if self.pages.lacks(filled, filled + room.len(), max)
            && pipe::unread(fd).is_ok_and(|unread| unread > 0)
        {
            self.pages.provide(filled, room, max);
        }
        self.memory.read_from(fd, max)
    }

    /// Adds a copy of `bytes`.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.provide(bytes.len())?;
        self.memory.push(bytes)
    }

    fn provide(&mut self, more: usize) -> io::Result<()> {
        let filled = self.memory.as_bytes().len();
        self.pages.provide(filled, self.memory.reserve(more)?, more);
        Ok(())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.memory.as_bytes()
    }

    /// The memory, without what was not used.
    pub(super) fn finish(mut self) -> M {
        self.memory.finish();
        self.memory
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    /// Whether this process has the page that an address is in.
    fn is_present(address: usize) -> bool {
        let map = std::fs::File::open("/proc/self/pagemap").unwrap();
        let page = (address / rustix::param::page_size()) as u64;
        let mut entry = [0; 8];
        map.read_exact_at(&mut entry, 8 * page).unwrap();
        u64::from_ne_bytes(entry) >> 63 == 1
    }

    /// A mapping for each would use up those that a process may have.
    #[test]
    fn a_small_result_is_no_mapping_of_its_own() {
        let mappings = || {
            std::fs::read_to_string("/proc/self/maps")
                .unwrap()
                .lines()
                .count()
        };
        let (read, write) = pipe::pipe().unwrap();
        let before = mappings();
        let results: Vec<Vec<u8>> = Vec::from_iter((0..200).map(|_| {
            rustix::io::write(&write, &[7; 20_000]).unwrap();
            let mut kept = Kept::new();
            assert_eq!(kept.read_from(read.as_fd(), 64 * 1024).unwrap(), 20_000);
            kept.finish()
        }));
        assert!(mappings() < before + 100, "{} results", results.len());
    }

    #[test]
    fn pages_are_there_before_the_bytes() {
        let mut kept = Kept::<Vec<u8>>::new();
        let piece = [7; 64 * 1024];
        for _ in 0..64 {
            kept.push(&piece).unwrap();
        }
        // The next read is of as much, and begins behind these.
        kept.provide(piece.len()).unwrap();
        let end = kept.memory.as_ptr().addr() + kept.memory.len();
        assert!(is_present(end) && is_present(end + piece.len() - 1));
        assert_eq!(kept.finish(), [7; 64 * 64 * 1024]);
    }
}
