//! Platforms whose processes we cannot start yet have none to reap.

use std::io;
use std::os::fd::BorrowedFd;

use super::{RawExit, Usage};

pub(crate) fn reap(_pidfd: BorrowedFd<'_>) -> io::Result<Option<(RawExit, Usage)>> {
    Err(crate::sys::unsupported(
        "waiting through a process descriptor",
    ))
}

pub(crate) fn exit_info(_pidfd: BorrowedFd<'_>) -> Option<RawExit> {
    None
}
