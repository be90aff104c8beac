//! Where no list of words is walked when a thread ends.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use super::{FACTS, Facts};
use crate::sys::unsupported;
use crate::time::Deadline;

#[derive(Debug)]
pub(crate) enum Ledger {}

#[derive(Debug)]
pub(crate) enum Held {}

impl Held {
    pub(crate) fn files(&self) -> [BorrowedFd<'_>; 2] {
        match *self {}
    }

    pub(crate) fn cell(&self) -> usize {
        match *self {}
    }
}

impl Ledger {
    pub(crate) fn start() -> io::Result<Ledger> {
        Err(unsupported("a liveness token"))
    }

    pub(crate) fn hold(&self, _: &Facts) -> io::Result<Option<Held>> {
        match *self {}
    }

    pub(crate) fn release(&self, _: &Held) {
        match *self {}
    }

    pub(crate) fn marks(&self) -> bool {
        match *self {}
    }

    pub(crate) fn claim(&self, _: &Rights, _: usize) -> io::Result<Option<Claimed>> {
        match *self {}
    }

    pub(crate) fn give(&self, _: &Claimed, _: u32) {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Claimed {}

#[derive(Debug)]
pub(crate) enum Rights {}

impl Rights {
    pub(crate) fn map(_: BorrowedFd<'_>) -> io::Result<Rights> {
        Err(unsupported("a liveness token"))
    }

    pub(crate) fn word(&self, _: usize) -> &AtomicU32 {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum View {}

impl View {
    pub(crate) fn map(_: BorrowedFd<'_>) -> io::Result<View> {
        Err(unsupported("a liveness token"))
    }

    pub(crate) fn word(&self, _: usize) -> Option<&AtomicU32> {
        match *self {}
    }

    pub(crate) fn facts(&self, _: usize) -> Option<&[AtomicU32; FACTS]> {
        match *self {}
    }
}

pub(crate) fn rights() -> io::Result<OwnedFd> {
    Err(unsupported("a liveness token"))
}

pub(crate) fn sleep(_: &AtomicU32, _: u32, _: Deadline) {}

pub(crate) fn wake(_: &AtomicU32) {}

#[derive(Debug)]
pub(crate) struct Pending;

impl Pending {
    pub(crate) fn on(_: &AtomicU32, _: u32) -> Pending {
        Pending
    }
}

pub(crate) const MANY: usize = 1;

pub(crate) fn sleep_alone(_: &AtomicU32, _: u32) {}

pub(crate) fn wake_alone(_: &AtomicU32) {}

pub(crate) fn sleep_on_many(_: &[(&AtomicU32, u32)]) -> io::Result<()> {
    Err(unsupported("sleeping on words"))
}

pub(crate) fn may_sleep_on_many() -> bool {
    false
}
