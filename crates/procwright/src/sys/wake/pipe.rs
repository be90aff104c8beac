//! Wake-ups by a pipe, where there is no eventfd.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::pipe;

#[derive(Debug)]
pub(crate) struct Wake {
    read: OwnedFd,
    write: OwnedFd,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Wake> {
        let (read, write) = pipe::pipe()?;
        pipe::set_nonblocking(&read)?;
        pipe::set_nonblocking(&write)?;
        Ok(Wake { read, write })
    }

    pub(crate) fn ring(&self) {
        // A full pipe is a rung pipe.
        let _ = rustix::io::write(&self.write, &[1]);
    }

    pub(crate) fn silence(&self) {
        let mut rings = [0u8; 64];
        while rustix::io::read(&self.read, &mut rings).is_ok_and(|n| n == rings.len()) {}
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
