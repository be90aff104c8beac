//! Platforms where no list of words is walked when a thread ends.
#![allow(missing_docs, reason = "documented where the kernel has it")]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use super::{FACTS, Facts};
use crate::time::Deadline;
use crate::unsupported;

#[derive(Debug)]
pub enum HolderThread {}

#[derive(Debug)]
pub enum HeldWord {}

impl HeldWord {
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        match *self {}
    }

    pub fn cell(&self) -> usize {
        match *self {}
    }
}

impl HolderThread {
    pub fn start() -> io::Result<HolderThread> {
        Err(unsupported("a liveness token"))
    }

    pub fn hold(&self, _: &Facts) -> io::Result<Option<HeldWord>> {
        match *self {}
    }

    pub fn release(&self, _: &HeldWord) {
        match *self {}
    }

    pub fn marks(&self) -> bool {
        match *self {}
    }

    pub fn claim(&self, _: &MappedRights, _: usize) -> io::Result<Option<HeldRight>> {
        match *self {}
    }

    pub fn give(&self, _: &HeldRight, _: u32) {
        match *self {}
    }
}

#[derive(Debug)]
pub enum HeldRight {}

#[derive(Debug)]
pub enum MappedRights {}

impl MappedRights {
    pub fn map(_: BorrowedFd<'_>) -> io::Result<MappedRights> {
        Err(unsupported("a liveness token"))
    }

    pub fn word(&self, _: usize) -> &AtomicU32 {
        match *self {}
    }
}

#[derive(Debug)]
pub enum MappedCells {}

impl MappedCells {
    pub fn map(_: BorrowedFd<'_>) -> io::Result<MappedCells> {
        Err(unsupported("a liveness token"))
    }

    pub fn word(&self, _: usize) -> Option<&AtomicU32> {
        match *self {}
    }

    pub fn facts(&self, _: usize) -> Option<&[AtomicU32; FACTS]> {
        match *self {}
    }
}

pub fn create_rights_file() -> io::Result<OwnedFd> {
    Err(unsupported("a liveness token"))
}

pub fn sleep(_: &AtomicU32, _: u32, _: Deadline) {}

pub fn wake(_: &AtomicU32) {}

#[derive(Debug)]
pub struct PendingOp;

impl PendingOp {
    pub fn on(_: &AtomicU32, _: u32) -> PendingOp {
        PendingOp
    }
}

pub const MANY: usize = 1;

pub fn sleep_alone(_: &AtomicU32, _: u32) {}

pub fn wake_alone(_: &AtomicU32) {}

pub fn sleep_on_many(_: &[(&AtomicU32, u32)]) -> io::Result<()> {
    Err(unsupported("sleeping on words"))
}

pub fn may_sleep_on_many() -> bool {
    false
}
