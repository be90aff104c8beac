//! Not yet: kqueue.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::On;
use crate::sys::unsupported;
use crate::time::Deadline;

/// Cannot be made.
#[derive(Debug)]
pub(crate) struct ReadySet(OwnedFd);

impl ReadySet {
    pub(crate) fn new() -> io::Result<ReadySet> {
        Err(unsupported("waiting for many"))
    }

    pub(crate) fn add(&self, _fd: BorrowedFd<'_>, _key: u64, _on: On) -> io::Result<()> {
        Err(unsupported("waiting for many"))
    }

    pub(crate) fn remove(&self, _fd: BorrowedFd<'_>) {}

    pub(crate) fn add_process(&self, _pid: i32, _key: u64) -> io::Result<()> {
        Err(unsupported("watching a process by its number"))
    }

    pub(crate) fn remove_process(&self, _pid: i32) {}

    pub(crate) fn wait(&self, _keys: &mut Vec<u64>, _deadline: Deadline) -> io::Result<()> {
        Err(unsupported("waiting for many"))
    }
}

impl AsFd for ReadySet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
