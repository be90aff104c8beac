//! Where no file in memory can be sealed.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use super::Word;
use crate::sys::unsupported;
use crate::time::Deadline;

pub(crate) fn create(_: u64) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub(crate) fn size(_: BorrowedFd<'_>) -> io::Result<u64> {
    Err(unsupported("a queue"))
}

pub(crate) fn reopen(_: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}

pub(crate) fn of_process(_: u32, _: u32) -> io::Result<Option<OwnedFd>> {
    Err(unsupported("a queue"))
}

pub(crate) fn append(_: BorrowedFd<'_>, _: &[u8]) -> io::Result<()> {
    Err(unsupported("a queue"))
}

pub(crate) fn lock(_: BorrowedFd<'_>, _: u64) -> io::Result<bool> {
    Err(unsupported("a queue"))
}

pub(crate) fn unlock(_: BorrowedFd<'_>, _: u64) {}

pub(crate) fn is_locked(_: BorrowedFd<'_>, _: u64) -> io::Result<bool> {
    Err(unsupported("a queue"))
}

pub(crate) fn memory(_: BorrowedFd<'_>) -> io::Result<u64> {
    Err(unsupported("a queue"))
}

pub(crate) fn number_at(_: BorrowedFd<'_>, _: u64) -> io::Result<u64> {
    Err(unsupported("a queue"))
}

pub(crate) fn provide(_: BorrowedFd<'_>, _: u64, _: u64) -> io::Result<()> {
    Err(unsupported("a queue"))
}

pub(crate) fn discard(_: BorrowedFd<'_>, _: u64, _: u64) {}

pub(crate) fn link() -> io::Result<(OwnedFd, OwnedFd)> {
    Err(unsupported("a queue"))
}

pub(crate) fn ring(_: BorrowedFd<'_>) -> bool {
    false
}

pub(crate) fn silence(_: BorrowedFd<'_>) -> bool {
    false
}

pub(crate) fn is_abandoned(_: BorrowedFd<'_>) -> bool {
    true
}

pub(crate) fn sleep(_: &AtomicU32, _: u32, _: Deadline) {}

pub(crate) fn sleep_on_two(_: [(&AtomicU32, u32); 2], _: Deadline) -> io::Result<()> {
    Err(unsupported("a queue"))
}

pub(crate) fn last_tick() -> Duration {
    Duration::ZERO
}

#[derive(Debug)]
pub(crate) enum Region {}

impl Region {
    pub(crate) fn map(_: BorrowedFd<'_>, _: u64, _: u64, _: bool) -> io::Result<Region> {
        Err(unsupported("a queue"))
    }

    pub(crate) fn word<T: Plain>(self: &Arc<Region>, _: u64) -> Word<T> {
        match **self {}
    }

    pub(crate) fn look<T: Plain>(&self, _: u64) -> &T {
        match *self {}
    }

    pub(crate) fn words(&self, _: u64, _: usize) -> &[AtomicU64] {
        match *self {}
    }

    pub(crate) fn copy_in(&self, _: u64, _: &[u8]) {
        match *self {}
    }

    /// # Safety
    /// There is none.
    pub(crate) unsafe fn bytes(&self, _: u64, _: u64) -> &[u8] {
        match *self {}
    }

    /// # Safety
    /// There is none.
    #[expect(clippy::mut_from_ref, reason = "there is none")]
    pub(crate) unsafe fn bytes_mut(&self, _: u64, _: u64) -> &mut [u8] {
        match *self {}
    }
}

pub(crate) trait Plain {}
impl Plain for AtomicU32 {}
impl Plain for AtomicU64 {}
impl<T: Plain, const N: usize> Plain for [T; N] {}
