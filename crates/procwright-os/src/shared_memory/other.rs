//! Platforms where no file in memory can be sealed.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use super::RegionWord;
use crate::time::Deadline;
use crate::unsupported;

pub fn create(_: u64) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub fn sealed_size(_: BorrowedFd<'_>) -> io::Result<u64> {
    Err(unsupported("a queue"))
}

pub fn reopen(_: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub fn open_of_process(_: u32, _: u32) -> io::Result<Option<OwnedFd>> {
    Err(unsupported("a queue"))
}

pub fn append(_: BorrowedFd<'_>, _: &[u8]) -> io::Result<()> {
    Err(unsupported("a queue"))
}

pub fn lock(_: BorrowedFd<'_>, _: u64) -> io::Result<bool> {
    Err(unsupported("a queue"))
}

pub fn unlock(_: BorrowedFd<'_>, _: u64) {}

pub fn is_locked(_: BorrowedFd<'_>, _: u64) -> io::Result<bool> {
    Err(unsupported("a queue"))
}

pub fn allocated_bytes(_: BorrowedFd<'_>) -> io::Result<u64> {
    Err(unsupported("a queue"))
}

pub fn read_u64(_: BorrowedFd<'_>, _: u64) -> io::Result<u64> {
    Err(unsupported("a queue"))
}

pub fn allocate(_: BorrowedFd<'_>, _: u64, _: u64) -> io::Result<()> {
    Err(unsupported("a queue"))
}

pub fn punch_hole(_: BorrowedFd<'_>, _: u64, _: u64) {}

pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Err(unsupported("a queue"))
}

pub fn ring(_: BorrowedFd<'_>) -> bool {
    false
}

pub fn silence(_: BorrowedFd<'_>) -> bool {
    false
}

pub fn is_hung_up(_: BorrowedFd<'_>) -> bool {
    true
}

pub fn sleep(_: &AtomicU32, _: u32, _: Deadline) {}

pub fn sleep_on_two(_: [(&AtomicU32, u32); 2], _: Deadline) -> io::Result<()> {
    Err(unsupported("a queue"))
}

pub fn coarse_now() -> Duration {
    Duration::ZERO
}

#[derive(Debug)]
pub enum Region {}

impl Region {
    pub fn map(_: BorrowedFd<'_>, _: u64, _: u64, _: bool) -> io::Result<Region> {
        Err(unsupported("a queue"))
    }

    pub fn word<T: Plain>(self: &Arc<Region>, _: u64) -> RegionWord<T> {
        match **self {}
    }

    pub fn atomic<T: Plain>(&self, _: u64) -> &T {
        match *self {}
    }

    pub fn words(&self, _: u64, _: usize) -> &[AtomicU64] {
        match *self {}
    }

    pub fn copy_in(&self, _: u64, _: &[u8]) {
        match *self {}
    }

    /// # Safety
    /// There is none.
    pub unsafe fn bytes(&self, _: u64, _: u64) -> &[u8] {
        match *self {}
    }

    /// # Safety
    /// There is none.
    #[expect(clippy::mut_from_ref, reason = "there is none")]
    pub unsafe fn bytes_mut(&self, _: u64, _: u64) -> &mut [u8] {
        match *self {}
    }
}

pub trait Plain {}
impl Plain for AtomicU32 {}
impl Plain for AtomicU64 {}
impl<T: Plain, const N: usize> Plain for [T; N] {}
