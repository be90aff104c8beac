//! Platforms without signalfd, where nothing is held back.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::SignalInfo;

/// Blocked signals, which cannot be had here.
#[derive(Debug)]
pub struct SignalFd {
    fd: OwnedFd,
}

impl SignalFd {
    pub fn new(_signals: &[i32]) -> io::Result<SignalFd> {
        Err(crate::unsupported("reading signals from a descriptor"))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn next(&self) -> Option<SignalInfo> {
        None
    }

    pub fn unblock(&self) {}

    pub fn block(&self) {}
}

pub fn stop_self(_signal: i32) -> io::Result<bool> {
    Err(crate::unsupported("a stop that is told of"))
}

pub fn take_child_stop(_pid: i32) -> Option<i32> {
    None
}

pub fn discard_pending(_signals: &[i32]) {}
