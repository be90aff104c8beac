//! A buffer for what is read and not kept.

use std::io;
use std::os::fd::BorrowedFd;

use procwright_os::memory;

/// The size of the buffer: that of the largest pipe that we ask for.
const SIZE: usize = 256 * 1024;

/// Memory for one read, which the next one writes over. Had when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    /// Reads once.
    pub(super) fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        if self.0.capacity() == 0 {
            let reserved = self.0.try_reserve_exact(SIZE);
            reserved.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        }
        self.0.clear();
        memory::read_into_spare(fd, &mut self.0, max)
    }

    /// The bytes of the latest read, which returned `n`.
    pub(super) fn latest(&self, n: usize) -> &[u8] {
        &self.0[self.0.len() - n..]
    }
}
