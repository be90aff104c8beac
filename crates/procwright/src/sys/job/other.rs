//! Elsewhere there is no signalfd, and nothing is held back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Arrived;

#[derive(Debug)]
pub(crate) struct Held {
    fd: OwnedFd,
}

impl Held {
    pub(crate) fn new(_signals: &[i32]) -> io::Result<Held> {
        Err(crate::sys::unsupported("reading signals from a descriptor"))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn next(&self) -> Option<Arrived> {
        None
    }

    pub(crate) fn release(&self) {}

    pub(crate) fn hold(&self) {}
}

pub(crate) fn stop_self(_signal: i32) -> io::Result<bool> {
    Err(crate::sys::unsupported("a stop that is told of"))
}

pub(crate) fn take_stop(_pid: i32) -> Option<i32> {
    None
}

pub(crate) fn discard(_signals: &[i32]) {}

/// No program is started here yet that would have a terminal.
pub(crate) fn without<T>(_signal: i32, work: impl FnOnce() -> T) -> T {
    work()
}
