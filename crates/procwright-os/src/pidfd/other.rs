//! Platforms without process descriptors, where kqueue watches by pid instead.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::{ExitState, OpenError};
use crate::unsupported;

pub fn open(_pid: i32) -> Result<OwnedFd, OpenError> {
    Err(OpenError::Unavailable)
}

pub fn open_briefly(_pid: i32) -> Result<OwnedFd, OpenError> {
    Err(OpenError::Unavailable)
}

pub fn is_of_the_last(_fd: BorrowedFd<'_>) -> bool {
    false
}

pub fn send(_pidfd: BorrowedFd<'_>, _signal: i32) -> io::Result<()> {
    Err(unsupported("a process descriptor"))
}

pub fn send_group(_pidfd: BorrowedFd<'_>, _signal: i32) -> io::Result<()> {
    Err(unsupported("a process descriptor"))
}

pub fn has_exited(_pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    Err(unsupported("a process descriptor"))
}

pub fn inode(_pidfd: BorrowedFd<'_>) -> Option<u64> {
    None
}

pub fn exit_state(_pidfd: BorrowedFd<'_>) -> io::Result<ExitState> {
    Err(unsupported("a process descriptor"))
}

pub fn hangs_up_on_reap(_pidfd: BorrowedFd<'_>) -> bool {
    false
}

pub fn is_reaped(_pidfd: BorrowedFd<'_>) -> Option<bool> {
    Some(false)
}

pub fn pid(_pidfd: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    Err(unsupported("a process descriptor"))
}
