//! Pseudo-terminals.
//!
//! Contract of the platform files:
//! - `pair()`: a new terminal, the end that shows it (the master) and the end
//!   that programs get (the slave). Both are close-on-exec and blocking, and
//!   neither becomes anybody's controlling terminal.
//! - `number(stat)`: the number that a terminal goes by, of the end that programs
//!   get.
//! - `reopen(fd)`: the terminal that `fd` is, opened once more for reading and
//!   without ever blocking, so that the mode of others' descriptors stays.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::io;
use std::os::fd::OwnedFd;

pub(crate) use imp::{number, pair, reopen};

/// More than a terminal ever holds between its two ends: 8 KiB on their way and
/// 4 KiB that have arrived (Linux, `drivers/tty/pty.c` and `n_tty.c`). What the
/// program wrote before its exit is within so many bytes.
pub(crate) const MOST: u64 = 64 * 1024;

/// A new terminal.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) master: OwnedFd,
    pub(crate) slave: OwnedFd,
}

/// Whether a read of the master says that nobody has the slave open any more:
/// not an error, but the end.
pub(crate) fn is_end(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}
