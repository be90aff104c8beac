//! Memory for output of unknown length.

use std::io;

use procwright::memory::{Pages, give_back, next_capacity};

/// Memory that is read into. Each piece behind `filled` is cleared once, shortly before it is
/// used.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    data: Vec<u8>,
    /// Bytes that were read.
    pub(crate) filled: usize,
    pages: Pages,
}

impl ReadBuffer {
    /// Cleared memory for so many bytes more.
    pub(crate) fn room(&mut self, piece: usize) -> io::Result<&mut [u8]> {
        let needed = self.filled + piece;
        if self.data.len() < needed {
            if self.data.capacity() < needed {
                let capacity = match self.data.capacity() {
                    0 => needed,
                    before => next_capacity(before, needed),
                };
                let more = capacity - self.data.len();
                let reserved = self.data.try_reserve_exact(more);
                reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
            }
            let length = self.data.len();
            let spare = self.data.spare_capacity_mut();
            self.pages.provide(length, spare, needed - length);
            self.data.resize(needed, 0);
        }
        Ok(&mut self.data[self.filled..needed])
    }

    /// The bytes that were read.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.data[..self.filled]
    }

    pub(crate) fn into_vec(mut self) -> Vec<u8> {
        self.data.truncate(self.filled);
        give_back(&mut self.data, 1);
        self.data
    }
}
