//! Elsewhere. There are no queues.

use std::io;
use std::os::fd::OwnedFd;

use crate::sys::unsupported;

pub(super) fn watch(_: &OwnedFd) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}
