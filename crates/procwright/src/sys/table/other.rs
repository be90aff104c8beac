//! Elsewhere all threads share one table.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::unsupported;

pub(crate) fn leave() -> io::Result<()> {
    Err(unsupported("a thread with a descriptor table of its own"))
}

/// Of nobody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address;

/// Cannot be made.
#[derive(Debug)]
pub(crate) struct Nudge(OwnedFd);

impl Nudge {
    pub(crate) fn new() -> io::Result<Nudge> {
        Err(unsupported("a thread with a descriptor table of its own"))
    }

    pub(crate) fn address(&self) -> Address {
        Address
    }

    pub(crate) fn silence(&self) {}
}

impl AsFd for Nudge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn nudge(_thread: Address) -> io::Result<()> {
    Err(unsupported("a thread with a descriptor table of its own"))
}
