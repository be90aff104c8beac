//! Anonymous pipes.
//!
//! Contract of the platform files:
//! - `pipe()`: a pipe, both ends close-on-exec, both blocking.
//! - `grow(fd, bytes)`: asks for a larger buffer, returns the granted size.
//! - `capacity(fd)`: the buffer's size.
//! - `take_sigpipe()`: takes a SIGPIPE that is pending and blocked in this thread
//!   away, without waiting for one.
//! - `FullProbe`: tells whether a pipe whose write end we no longer hold is
//!   full at this moment; none where the platform has no way to know.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::ptr;

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

/// Writes once, and never raises SIGPIPE: that nobody reads is an answer
/// (`EPIPE`) and no reason to end the host, which may have that signal at its
/// default, as command-line programs do.
pub(crate) fn write(fd: impl AsFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    if sigpipe_is_ignored() {
        return rustix::io::write(fd, bytes);
    }
    let mut pipe = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises `pipe`, pthread_sigmask initialises
    // `before`; both are ours.
    unsafe {
        libc::sigemptyset(pipe.as_mut_ptr());
        libc::sigaddset(pipe.as_mut_ptr(), libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, pipe.as_ptr(), before.as_mut_ptr());
    }
    // One that the host has let wait is the host's.
    let waited = sigpipe_is_pending();
    let written = rustix::io::write(fd, bytes);
    if written == Err(rustix::io::Errno::PIPE) && !waited && sigpipe_is_pending() {
        imp::take_sigpipe();
    }
    // SAFETY: `before` was initialised above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    written
}

fn sigpipe_is_ignored() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the pointer is to writable memory of the right type, in which
    // zeroes are a valid value should the call fail.
    unsafe {
        libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn sigpipe_is_pending() -> bool {
    let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: as above.
    unsafe {
        libc::sigpending(pending.as_mut_ptr());
        libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1
    }
}
