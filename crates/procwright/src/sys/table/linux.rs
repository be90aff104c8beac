//! Linux: `close_range(2)` with `CLOSE_RANGE_UNSHARE` (5.9), `signalfd(2)` and
//! `tgkill(2)`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// Blocked on the thread that it is sent to, and ignored by default elsewhere.
/// A signal that is blocked is queued whatever its disposition is, and one that
/// is directed at a thread is seen by no other.
const SIGNAL: i32 = libc::SIGURG;

pub(crate) fn leave() -> io::Result<()> {
    // Unshares and closes in one step, which copies the first 64 entries at most,
    // and only until the call returns. Two steps would hold copies of all the
    // process's descriptors for a while, in which a pipe that another thread
    // closes would not end.
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

/// Which thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(i32);

#[derive(Debug)]
pub(crate) struct Nudge(OwnedFd);

impl Nudge {
    pub(crate) fn new() -> io::Result<Nudge> {
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
        // SAFETY: just made, and nobody else's.
        let nudge = Nudge(unsafe { OwnedFd::from_raw_fd(fd) });
        // A sandbox may forbid the signal or swallow it. It is to be found out
        // now and not when somebody waits for an answer.
        self::nudge(nudge.address())?;
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        rustix::io::read(&nudge.0, &mut info)?;
        Ok(nudge)
    }

    pub(crate) fn address(&self) -> Address {
        // SAFETY: a plain call without pointers.
        Address(unsafe { libc::syscall(libc::SYS_gettid) } as i32)
    }

    pub(crate) fn silence(&self) {
        // A second one while the first waits is not queued, so one read does.
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let _ = rustix::io::read(&self.0, &mut info);
    }
}

impl AsFd for Nudge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn nudge(thread: Address) -> io::Result<()> {
    // SAFETY: a plain call without pointers. The thread exists, says the
    // contract, so the number is its own.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread.0, SIGNAL) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
