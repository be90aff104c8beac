//! Platforms whose processes we cannot start yet have none to reap.

use std::io;
use std::os::fd::BorrowedFd;

use super::{RawExit, Usage};
use crate::time::Deadline;

pub(crate) fn reap(_pidfd: BorrowedFd<'_>) -> io::Result<Option<(RawExit, Usage)>> {
    Err(crate::sys::unsupported(
        "waiting through a process descriptor",
    ))
}

pub(crate) fn exit_info(_pidfd: BorrowedFd<'_>) -> Option<RawExit> {
    None
}

pub(crate) fn peek(_pidfd: BorrowedFd<'_>) -> io::Result<Option<RawExit>> {
    Err(crate::sys::unsupported("a process descriptor"))
}

pub(crate) fn peek_child(_pid: i32) -> io::Result<Option<RawExit>> {
    Err(crate::sys::unsupported("looking at a child's status"))
}

pub(crate) fn await_child(_pid: i32) -> io::Result<()> {
    Err(crate::sys::unsupported("waiting for a child"))
}

pub(crate) fn await_reap(_pidfd: BorrowedFd<'_>, _deadline: Deadline) -> io::Result<()> {
    Err(crate::sys::unsupported("a process descriptor"))
}

pub(crate) fn remembered(_pidfd: BorrowedFd<'_>) -> Option<RawExit> {
    None
}

pub(crate) fn of_status(status: i32) -> RawExit {
    match status & 0x7f {
        0 => RawExit::Code(status >> 8 & 0xff),
        number => RawExit::Signal {
            number,
            core: status & 0x80 != 0,
        },
    }
}
