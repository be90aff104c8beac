//! Platforms without such a call.

use std::io;
use std::os::fd::BorrowedFd;

pub(super) fn without_wait(_fd: BorrowedFd<'_>, _bytes: &[u8]) -> Option<io::Result<usize>> {
    None
}
