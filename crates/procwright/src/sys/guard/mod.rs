//! A process that does one thing when this one has gone, however it went.
//!
//! Contract: `start(fd, work)` makes it. It has `fd` and nothing else of ours, no
//! pipe, no terminal that controls it, no place in our group or session, and no
//! signal but SIGKILL reaches it. Once this process has ended without
//! [`dismiss`](Guard::dismiss) it calls `work`, and ends.
//!
//! It is a fork and not a program: starting one takes a fifth of the time, needs
//! no file that may be gone by now, and its memory is ours but for some pages. So
//! this process must have one thread: a copy of one with several may find a lock
//! taken by a thread that it has not.
//!
//! It is nobody's child, so that it is neither waited for nor taken for a part of
//! what this process runs.

use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::pipe;
use super::unsupported;

/// Lives until this goes, or this process.
#[derive(Debug)]
pub(crate) struct Guard(std::fs::File);

impl Guard {
    /// It is not needed any more.
    pub(crate) fn dismiss(mut self) {
        // It may have been killed; then there is nothing to do.
        let _ = super::signal::without_sigpipe(|| self.0.write(b"."));
    }
}

/// Starts one.
///
/// # Errors
/// `Unsupported` if this process has several threads, or cannot tell; whatever
/// `fork(2)` and `pipe(2)` say.
pub(crate) fn start(fd: BorrowedFd<'_>, work: impl FnOnce()) -> io::Result<Guard> {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if !matches!(threads, Ok(1)) {
        return Err(unsupported("a guard of a process with several threads"));
    }
    let (life, ours) = pipe::pipe()?;
    // Before the fork: no handler of ours, which writes to descriptors that the
    // copy has as well, must run there.
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises `all`, sigprocmask `before`. This process has
    // one thread, so its copy may do all that this may.
    let middle = unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        libc::fork()
    };
    let error = io::Error::last_os_error();
    if middle == 0 {
        leave(&life, fd, work);
    }
    // SAFETY: it was initialised above.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    if middle < 0 {
        return Err(error);
    }
    wait_for(middle);
    Ok(Guard(ours.into()))
}

/// In the fork: makes another, which is nobody's child once this has ended.
fn leave(life: &OwnedFd, fd: BorrowedFd<'_>, work: impl FnOnce()) -> ! {
    // SAFETY: system calls that take no memory of ours.
    unsafe {
        libc::setsid();
        if libc::fork() == 0 {
            close_all_but(life.as_raw_fd(), fd.as_raw_fd());
            // So that no file system is kept from being unmounted.
            libc::chdir(c"/".as_ptr());
            if has_ended(life) {
                work();
            }
        }
        libc::_exit(0)
    }
}

/// Waits until our maker is gone, and says whether it went without a word.
fn has_ended(life: &OwnedFd) -> bool {
    loop {
        match rustix::io::read(life, &mut [0; 1]) {
            Ok(n) => return n == 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn close_all_but(one: RawFd, other: RawFd) {
    let (low, high) = (one.min(other), one.max(other));
    for (first, last) in [(0, low - 1), (low + 1, high - 1), (high + 1, RawFd::MAX)] {
        if first > last {
            continue;
        }
        // SAFETY: nobody but us has them, and nothing that owns one of them runs
        // from here on.
        unsafe {
            let closed = close_range(first, last);
            if !closed {
                let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65536);
                for fd in first..=last.min(RawFd::try_from(most).unwrap_or(256)) {
                    libc::close(fd);
                }
            }
        }
    }
}

/// False where there is no such call: before Linux 5.9, and elsewhere.
///
/// # Safety
/// Nobody uses these descriptors any more.
unsafe fn close_range(first: RawFd, last: RawFd) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: a system call on numbers, and the caller's promise.
    return unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (first, last);
        false
    }
}

fn wait_for(child: libc::pid_t) {
    // SAFETY: waitpid without a status pointer touches no memory of ours. Where
    // the system reaps for us it fails once the child has gone.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}
