//! Platforms with neither resizable pipes nor a way to ask whether one is full.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::FdFlags;

use super::PipeEnds;

pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe()?;
    rustix::io::fcntl_setfd(&read, FdFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&write, FdFlags::CLOEXEC)?;
    Ok((read, write))
}

pub fn grow(_fd: impl AsFd, _bytes: usize) -> io::Result<usize> {
    Err(crate::unsupported("resizing a pipe"))
}

pub fn capacity(_fd: impl AsFd) -> io::Result<usize> {
    Ok(super::DEFAULT_CAPACITY)
}

/// A probe that cannot exist here.
#[derive(Debug)]
pub struct FullProbe(Infallible);

impl FullProbe {
    pub fn new(_write_end: BorrowedFd<'_>) -> io::Result<FullProbe> {
        Err(crate::unsupported("asking whether a pipe is full"))
    }

    pub fn is_full(&self) -> bool {
        match self.0 {}
    }
    pub fn is_registered(&self) -> bool {
        match self.0 {}
    }
}

/// A probe that cannot exist here.
#[derive(Debug)]
pub struct EndsProbe(Infallible);

impl EndsProbe {
    pub fn new(_read_end: BorrowedFd<'_>, _write_end: BorrowedFd<'_>) -> io::Result<EndsProbe> {
        Err(crate::unsupported("asking who is left at a pipe"))
    }

    pub fn look(&self) -> io::Result<PipeEnds> {
        match self.0 {}
    }
    pub fn knows_order(&self) -> bool {
        match self.0 {}
    }
}
