//! poll(2), and complete writes to descriptors that others may have made
//! non-blocking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Longest time that is passed to poll(2), 31 years. A longer one may not fit the
/// system's type; the caller's loop looks at the clock again after it.
const LONGEST: Timespec = Timespec {
    tv_sec: 1_000_000_000,
    tv_nsec: 0,
};

/// Sleeps until a descriptor is ready, the time is over (None: never), or a signal
/// handler has run. The caller checks which of them it was.
///
/// # Errors
/// Those of poll(2), but for EINTR.
#[doc(alias = "poll")]
pub(crate) fn wait_ready(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| Timespec::try_from(timeout).unwrap_or(LONGEST));
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether a short write to `fd` would end at once, well or not. A pipe
/// then has room for a page, which is more than a message takes, and a terminal
/// for some lines; a terminal that was stopped (Ctrl-S) has none.
pub(crate) fn is_writable(fd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Returns whether there is something to read from `fd` at this moment.
pub(crate) fn is_readable(fd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Writes all of `bytes`. Returns how many were written, and the error that kept
/// the others from it.
#[doc(alias = "write")]
pub(crate) fn write_all(fd: BorrowedFd<'_>, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(fd, &bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(Errno::INTR) => {}
            // Another process that shares the terminal has made it non-blocking.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None);
            }
            Err(error) => return (written, Err(error.into())),
        }
    }
    (written, Ok(()))
}
