//! Waiting for readiness until a deadline.

use std::io;
use std::time::Instant;

use rustix::event::{PollFd, Timespec};

use crate::time::Deadline;

pub use rustix::event::{PollFd as Fd, PollFlags as Flags};

/// Waits until one of `fds` is ready, the deadline comes or a signal handler
/// has run, and returns how many are ready.
///
/// # Errors
/// `Interrupted` after a signal handler: poll is never restarted by the kernel,
/// so the caller learns of every one and can ask whose it was.
#[doc(alias = "ppoll")]
pub fn poll(fds: &mut [PollFd<'_>], deadline: Deadline) -> io::Result<usize> {
    // ppoll counts nanoseconds: nothing is rounded, so nothing wakes early and
    // spins for the rest of its last millisecond.
    let timeout = deadline
        .remaining(Instant::now())
        .map(|left| Timespec::try_from(left).unwrap_or(LONGEST));
    Ok(rustix::event::poll(fds, timeout.as_ref())?)
}

/// Waits until `fd` is ready, whatever signal handlers run meanwhile; false if the
/// deadline came first.
///
/// # Errors
/// Those of `ppoll(2)` but `EINTR`.
pub fn wait_one(fd: PollFd<'_>, deadline: Deadline) -> io::Result<bool> {
    let mut fds = [fd];
    loop {
        match poll(&mut fds, deadline) {
            Ok(ready) => return Ok(ready > 0),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// A wait of 31 years, for durations that do not fit the kernel's type. The
/// caller's loop compares with its deadline after every wake-up anyway.
const LONGEST: Timespec = Timespec {
    tv_sec: 1_000_000_000,
    tv_nsec: 0,
};
