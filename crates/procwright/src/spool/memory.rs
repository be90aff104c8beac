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
        if self.capacity() - self.len() < max {
            grow(self, max)?;
        }
        crate::sys::memory::read_into_spare(fd, self, max)
    }

    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.capacity() - self.len() < bytes.len() {
            grow(self, bytes.len())?;
        }
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self) {
        self.shrink_to_fit();
    }
}

/// Makes room for `more` bytes, at least doubling. Untouched memory is only an
/// address, and the system's allocator moves large blocks by their page tables,
/// so neither the doubling nor the move costs what it seems to.
fn grow(memory: &mut Vec<u8>, more: usize) -> io::Result<()> {
    let more = more.max(memory.capacity());
    memory
        .try_reserve_exact(more)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))
}
