//! No process descriptors: kqueue watches by pid instead.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Refused;
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

/// Cannot be made.
#[derive(Debug)]
pub(crate) struct EndSet(OwnedFd);

impl EndSet {
    pub(crate) fn new() -> io::Result<EndSet> {
        Err(unsupported("a set of process descriptors"))
    }

    pub(crate) fn add(&self, _pidfd: BorrowedFd<'_>, _key: u64) -> io::Result<()> {
        Err(unsupported("a set of process descriptors"))
    }

    pub(crate) fn remove(&self, _pidfd: BorrowedFd<'_>) {}

    pub(crate) fn ended(&self, _keys: &mut Vec<u64>) {}
}

impl AsFd for EndSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
