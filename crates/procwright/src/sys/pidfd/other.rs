//! No process descriptors: kqueue watches by pid instead.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::{Life, Refused};
use crate::sys::unsupported;

pub(crate) fn open(_pid: i32) -> Result<OwnedFd, Refused> {
    Err(Refused::Never)
}

pub(crate) fn send(_pidfd: BorrowedFd<'_>, _signal: i32) -> io::Result<()> {
    Err(unsupported("a process descriptor"))
}

pub(crate) fn send_group(_pidfd: BorrowedFd<'_>, _signal: i32) -> io::Result<()> {
    Err(unsupported("a process descriptor"))
}

pub(crate) fn has_exited(_pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    Err(unsupported("a process descriptor"))
}

pub(crate) fn inode(_pidfd: BorrowedFd<'_>) -> Option<u64> {
    None
}

pub(crate) fn life(_pidfd: BorrowedFd<'_>) -> io::Result<Life> {
    Err(unsupported("a process descriptor"))
}

pub(crate) fn tells_of_reaps(_pidfd: BorrowedFd<'_>) -> bool {
    false
}

pub(crate) fn number(_pidfd: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    Err(unsupported("a process descriptor"))
}
