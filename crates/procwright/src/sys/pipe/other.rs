//! Platforms with neither resizable pipes nor a way to ask whether one is full.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::FdFlags;

pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe()?;
    rustix::io::fcntl_setfd(&read, FdFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&write, FdFlags::CLOEXEC)?;
    Ok((read, write))
}

pub(crate) fn grow(_fd: impl AsFd, _bytes: usize) -> io::Result<usize> {
    Err(crate::sys::unsupported("resizing a pipe"))
}

pub(crate) fn capacity(_fd: impl AsFd) -> io::Result<usize> {
    Ok(super::DEFAULT_CAPACITY)
}

/// Cannot exist here.
#[derive(Debug)]
pub(crate) struct FullProbe(Infallible);

impl FullProbe {
    pub(crate) fn new(_write_end: BorrowedFd<'_>) -> io::Result<FullProbe> {
        Err(crate::sys::unsupported("asking whether a pipe is full"))
    }

    pub(crate) fn is_full(&self) -> bool {
        match self.0 {}
    }
    pub(crate) fn has_writer(&self) -> bool {
        match self.0 {}
    }
}
