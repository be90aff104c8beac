//! Pseudo-terminals.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::io;
use std::os::fd::OwnedFd;

/// The number that a terminal goes by, from a `stat` of the end that programs get.
#[doc(alias = "ptsname")]
pub use imp::number;
/// Opens a new terminal. Both ends are close-on-exec and blocking, and neither becomes
/// a controlling terminal.
///
/// # Errors
/// Those of `posix_openpt(3)`; `Unsupported` elsewhere than on Linux.
#[doc(alias = "openpty")]
#[doc(alias = "posix_openpt")]
pub use imp::pair;
/// Opens the terminal that `fd` is once more, for reading and non-blocking, so that the
/// mode of other descriptors stays.
///
/// # Errors
/// Those of `open(2)`; `Unsupported` elsewhere than on Linux.
#[doc(alias = "/proc/self/fd")]
pub use imp::reopen;

/// More bytes than a terminal ever holds between its two ends: 8 KiB on their way and
/// 4 KiB that have arrived (Linux, `drivers/tty/pty.c` and `n_tty.c`). What the
/// program wrote before its exit is within so many bytes.
pub const MAX_IN_FLIGHT: u64 = 64 * 1024;

/// A new terminal.
#[derive(Debug)]
pub struct Pair {
    /// The end that shows the terminal.
    pub master: OwnedFd,
    /// The end that programs get.
    pub slave: OwnedFd,
}

/// True if an error of a read of the master means that no slave is open any more:
/// the end, and not an error (`EIO`).
pub fn is_end(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}
