//! Anonymous pipes.
//!
//! Contract of the platform files:
//! - `pipe()`: a pipe, both ends close-on-exec, both blocking.
//! - `grow(fd, bytes)`: asks for a larger buffer, returns the granted size.
//! - `capacity(fd)`: the buffer's size.
//! - `FullProbe`: tells whether a pipe whose write end we no longer hold is
//!   full at this moment; none where the platform has no way to know.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::io;
use std::os::fd::AsFd;

use rustix::fs::OFlags;

pub(crate) use imp::{FullProbe, capacity, grow, pipe};

/// The size of a pipe that nobody has asked for anything, on Linux.
pub(crate) const DEFAULT_CAPACITY: usize = 64 * 1024;

/// Makes our end non-blocking. The other end is another open file description
/// and keeps its mode, so the child notices nothing.
pub(crate) fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    // A fresh pipe end has no status flags but its access mode, which F_SETFL
    // ignores, so there is nothing to read first.
    Ok(rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK)?)
}

/// The bytes that a read would return now. Asked once, after the program's
/// exit, never in a loop: a size is no promise while a writer lives.
pub(crate) fn unread(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(fd)?)
}
