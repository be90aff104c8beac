//! Wake-ups by eventfd: one descriptor, and rings add up instead of filling a buffer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// A sticky wake-up that a poll can wait for.
#[doc(alias = "eventfd")]
#[doc(alias = "self-pipe")]
#[derive(Debug)]
pub struct Wake(OwnedFd);

impl Wake {
    /// A wake-up that is not rung.
    ///
    /// # Errors
    /// Those of `eventfd(2)`.
    pub fn new() -> io::Result<Wake> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wake(fd))
    }

    /// Makes the descriptor readable. Never blocks.
    pub fn ring(&self) {
        // The only failure is a counter at its maximum, which is as readable as can be.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable until the next ring. Never blocks.
    pub fn silence(&self) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
