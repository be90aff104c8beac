//! Anonymous pipes.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod closes;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::io;
use std::os::fd::AsFd;

use rustix::fs::OFlags;

/// The size of a pipe's buffer.
///
/// # Errors
/// Those of `fcntl(2)`.
#[doc(alias = "F_GETPIPE_SZ")]
pub use imp::capacity;
/// Asks for a larger buffer, and returns the granted size.
///
/// # Errors
/// `EPERM` beyond the limit of the user; `Unsupported` elsewhere than on Linux.
#[doc(alias = "F_SETPIPE_SZ")]
pub use imp::grow;
/// Makes a pipe, both ends close-on-exec and blocking: the end to read, the end to
/// write.
///
/// # Errors
/// Those of `pipe2(2)`.
#[doc(alias = "pipe2")]
pub use imp::pipe;
pub use imp::{EndsProbe, FullProbe};

/// The two ends of a pipe at one moment, as an [`EndsProbe`] sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeEnds {
    /// True if the end to read is open in a process.
    pub has_reader: bool,
    /// True if the end to write is open in a process.
    pub has_writer: bool,
    /// True if a read would wait.
    pub is_empty: bool,
    /// True if a write would wait.
    pub is_full: bool,
    /// True if the last reader left before the last writer, false if the last writer did or
    /// the reader is there still; none if that is not known.
    pub reader_left_first: Option<bool>,
}

/// The capacity of a fresh pipe, on Linux.
pub const DEFAULT_CAPACITY: usize = 64 * 1024;

/// Makes our end non-blocking. The other end is another open file description
/// and keeps its mode, so the child notices nothing.
///
/// # Errors
/// Those of `fcntl(2)`.
#[doc(alias = "O_NONBLOCK")]
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    // A fresh pipe end has no status flags but its access mode, which F_SETFL
    // ignores, so there is nothing to read first.
    Ok(rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK)?)
}

/// The bytes that a read would return now. While a writer lives that is a hint for the
/// next read, and no promise of its size.
///
/// # Errors
/// Those of `ioctl(2)`.
#[doc(alias = "FIONREAD")]
pub fn unread(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(fd)?)
}
