//! Platforms where no socket has a name without a file.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::{Accepted, Introduced, SocketName};
use crate::unsupported;

pub fn listen(_: &SocketName) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub fn connect(_: &SocketName) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub fn accept(_: BorrowedFd<'_>) -> io::Result<Accepted> {
    Err(unsupported("a queue"))
}

pub fn peer_is(_: BorrowedFd<'_>, _: i32) -> bool {
    false
}

pub fn introduce(_: BorrowedFd<'_>, _: u32) -> io::Result<()> {
    Err(unsupported("a queue"))
}

pub fn introduced(_: BorrowedFd<'_>) -> Introduced {
    Introduced::Gone
}
