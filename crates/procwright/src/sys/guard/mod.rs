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
//! It is a child of this process all the same, or each would leave a zombie where
//! nobody reaps orphans, as in many containers. [`is_ours`] tells it from those
//! that this process runs.

use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use super::{pidfd, pipe, poll, unsupported, wait};
use crate::time::Deadline;

/// Lives until this goes, or this process.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Its other end comes to an end with this process.
    life: std::fs::File,
    /// None where it cannot be had.
    pidfd: Option<OwnedFd>,
}

/// Those of this process. One at a time is all that anybody needs.
static CURRENT: AtomicI32 = AtomicI32::new(0);

/// Whether a child of this process is its guard.
pub(crate) fn is_ours(child: i32) -> bool {
    CURRENT.load(Ordering::Relaxed) == child
}

impl Guard {
    /// It is not needed any more. Returns once it has gone.
    pub(crate) fn dismiss(mut self) {
        // It may have been killed; then there is nothing to do.
        let _ = super::signal::without_sigpipe(|| self.life.write(b"."));
        if let Some(pidfd) = &self.pidfd {
            // Not to wait for its turn on the processor, or for ever if somebody
            // has stopped it.
            let _ = pidfd::send(pidfd.as_fd(), libc::SIGKILL);
            let mut fds = [poll::Fd::new(pidfd, poll::Flags::IN)];
            while poll::poll(&mut fds, Deadline::NEVER)
                .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
            {}
            let _ = wait::reap(pidfd.as_fd());
        }
        CURRENT.store(0, Ordering::Relaxed);
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
    let child = unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        libc::fork()
    };
    let error = io::Error::last_os_error();
    if child == 0 {
        stay(&life, fd, work);
    }
    // SAFETY: it was initialised above.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    if child < 0 {
        return Err(error);
    }
    CURRENT.store(child, Ordering::Relaxed);
    Ok(Guard {
        life: ours.into(),
        // Not reaped yet, so the number is its own.
        pidfd: pidfd::open(child).ok(),
    })
}

/// The life of the fork.
fn stay(life: &OwnedFd, fd: BorrowedFd<'_>, work: impl FnOnce()) -> ! {
    close_all_but(life.as_raw_fd(), fd.as_raw_fd());
    name_it();
    // SAFETY: system calls that take no memory of ours.
    unsafe {
        libc::setsid();
        // So that no file system is kept from being unmounted.
        libc::chdir(c"/".as_ptr());
    }
    if has_ended(life) {
        work();
    }
    // SAFETY: it runs no handlers and touches no memory.
    unsafe { libc::_exit(0) }
}

/// For people who look at the list of processes.
fn name_it() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::thread::set_name(c"procwright-tty");
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
