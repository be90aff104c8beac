//! Writing without waiting, to a descriptor whose mode is not ours to change.
//!
//! Contract of the platform files: `without_wait(fd, bytes)` writes what goes in at
//! once; `None` where the platform, or this kind of descriptor, has no such call.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::poll::{self, Flags};
use crate::time::Deadline;

/// The longest text that a pipe with room takes in one piece, everywhere on this platform:
/// `PIPE_BUF` is 512 in POSIX, 4,096 on Linux. A longer one may go in in part, or, where
/// poll has to be asked, wait.
#[doc(alias = "PIPE_BUF")]
pub const LONGEST: usize = if cfg!(any(target_os = "linux", target_os = "android")) {
    4096
} else {
    512
};

/// Writes `bytes` in one call if there is room now; false if there was none.
///
/// Systems without such a write are asked by poll whether there is room, and a pipe that
/// others fill in between makes the write wait.
///
/// # Errors
/// Those of the write.
#[doc(alias = "pwritev2")]
#[doc(alias = "RWF_NOWAIT")]
pub fn try_write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<bool> {
    let written = match imp::without_wait(fd, bytes) {
        Some(written) => written,
        None => {
            let mut fds = [poll::Fd::from_borrowed_fd(fd, Flags::OUT)];
            if poll::poll(&mut fds, Deadline::at(Instant::now()))? == 0 {
                return Ok(false);
            }
            rustix::io::write(fd, bytes).map_err(io::Error::from)
        }
    };
    match written {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}
