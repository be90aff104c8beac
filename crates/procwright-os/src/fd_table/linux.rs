//! Linux: `close_range(2)` with `CLOSE_RANGE_UNSHARE` (5.9), `signalfd(2)` and
//! `tgkill(2)`.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// The signal of wake-ups: blocked on the thread that it is sent to, ignored by
/// default elsewhere. A blocked signal is queued whatever its disposition is, and one
/// that is directed at a thread is seen by no other.
const SIGNAL: i32 = libc::SIGURG;

pub fn unshare_empty() -> io::Result<()> {
    // One step unshares and closes, and copies the first 64 entries at most, only until
    // the call returns. Two steps would hold copies of all the process's descriptors for
    // a while, in which a pipe that another thread closes would not end.
    //
    // SAFETY: the thread has no descriptor that it could still use. Others keep
    // theirs: the table that is emptied is a new one.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            0_u32,
            u32::MAX,
            libc::CLOSE_RANGE_UNSHARE,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The number of a thread of this process.
#[derive(Clone, Copy, Debug)]
pub struct Tid(i32);

/// A signalfd through which other threads wake one that shares no descriptor.
#[derive(Debug)]
pub struct ThreadWake(OwnedFd);

impl ThreadWake {
    /// Opens the signalfd on the thread that is to be woken, which has all signals
    /// blocked, and tries it out.
    ///
    /// # Errors
    /// Those of `signalfd(2)`, and of `tgkill(2)` in a sandbox that forbids it.
    pub fn new() -> io::Result<ThreadWake> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set, which is ours.
        let fd = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), SIGNAL);
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and owned by no other code.
        let nudge = ThreadWake(unsafe { OwnedFd::from_raw_fd(fd) });
        // A sandbox may forbid the signal or swallow it: found out now and not when a
        // caller waits for an answer.
        self::wake_thread(nudge.tid())?;
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        rustix::io::read(&nudge.0, &mut info)?;
        Ok(nudge)
    }

    /// The number that other threads pass to [`wake_thread`].
    pub fn tid(&self) -> Tid {
        // SAFETY: a plain call without pointers.
        Tid(unsafe { libc::syscall(libc::SYS_gettid) } as i32)
    }

    /// Takes the wake-up away, so that the descriptor is readable no more.
    pub fn silence(&self) {
        // A second signal while the first waits is not queued, so one read does.
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let _ = rustix::io::read(&self.0, &mut info);
    }
}

impl AsFd for ThreadWake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub fn wake_thread(thread: Tid) -> io::Result<()> {
    // SAFETY: a plain call without pointers. The thread exists, says the
    // contract, so the number is its own.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread.0, SIGNAL) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
