//! Where no socket has a name without a file.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::{Came, Introduced, Name};
use crate::sys::unsupported;

pub(crate) fn listen(_: &Name) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub(crate) fn connect(_: &Name) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub(crate) fn accept(_: BorrowedFd<'_>) -> io::Result<Came> {
    Err(unsupported("a queue"))
}

pub(crate) fn is_of(_: BorrowedFd<'_>, _: i32) -> bool {
    false
}

pub(crate) fn introduce(_: BorrowedFd<'_>, _: u32) -> io::Result<()> {
    Err(unsupported("a queue"))
}

pub(crate) fn introduced(_: BorrowedFd<'_>) -> Introduced {
    Introduced::Gone
}
