//! Platforms without abstract names, and without `/proc/PID/fd`.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::{Accepted, Introduced, PrivateListener, SocketName};
use crate::private_dir::PrivateDir;
use crate::unsupported;

pub fn listen_abstract(_: &SocketName) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub fn connect_abstract(_: &SocketName) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub fn listen_private(_: &PrivateDir, _: &SocketName) -> io::Result<PrivateListener> {
    Err(unsupported("a queue"))
}

pub fn connect_private(_: i32, _: u32, _: &SocketName) -> io::Result<OwnedFd> {
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
