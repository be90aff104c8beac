//! Descriptors that come as numbers.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// A duplicate, close-on-exec, of the descriptor that has this number now.
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: duplicating reads the descriptor table only; a number that is no
    // descriptor is answered by EBADF.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
