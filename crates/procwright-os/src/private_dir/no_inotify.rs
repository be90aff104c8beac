//! Platforms without inotify, which have no queues.

use std::io;
use std::os::fd::OwnedFd;

use crate::unsupported;

pub(super) fn watch(_: &OwnedFd) -> io::Result<OwnedFd> {
    Err(unsupported("a queue"))
}
