//! Wake-ups by a pipe, where there is no eventfd.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::pipe;

/// A sticky wake-up that a poll can wait for.
#[doc(alias = "self-pipe")]
#[derive(Debug)]
pub struct Wake {
    read: OwnedFd,
    write: OwnedFd,
}

impl Wake {
    /// A wake-up that is not rung.
    ///
    /// # Errors
    /// Those of `pipe(2)`.
    pub fn new() -> io::Result<Wake> {
        let (read, write) = pipe::pipe()?;
        pipe::set_nonblocking(&read)?;
        pipe::set_nonblocking(&write)?;
        Ok(Wake { read, write })
    }

    /// Makes the descriptor readable. Never blocks.
    pub fn ring(&self) {
        // A full pipe is readable.
        let _ = rustix::io::write(&self.write, &[1]);
    }

    /// Makes the descriptor unreadable until the next ring. Never blocks.
    pub fn silence(&self) {
        let mut rings = [0u8; 64];
        while rustix::io::read(&self.read, &mut rings).is_ok_and(|n| n == rings.len()) {}
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
