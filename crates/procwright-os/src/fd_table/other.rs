//! Platforms where all threads share one table.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::unsupported;

pub fn unshare_empty() -> io::Result<()> {
    Err(unsupported("a thread with a descriptor table of its own"))
}

/// The number of no thread.
#[derive(Clone, Copy, Debug)]
pub struct Tid;

/// A wake-up that cannot be made here.
#[derive(Debug)]
pub struct ThreadWake(OwnedFd);

impl ThreadWake {
    pub fn new() -> io::Result<ThreadWake> {
        Err(unsupported("a thread with a descriptor table of its own"))
    }

    pub fn tid(&self) -> Tid {
        Tid
    }

    pub fn silence(&self) {}
}

impl AsFd for ThreadWake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub fn wake_thread(_thread: Tid) -> io::Result<()> {
    Err(unsupported("a thread with a descriptor table of its own"))
}
