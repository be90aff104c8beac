//! A process that does one thing when this one has ended, however it ended.
//!
//! The watchdog has one descriptor of ours and nothing else: no pipe, no controlling
//! terminal, no place in our group or session, and no signal but SIGKILL reaches
//! it. Once this process has ended without [`dismiss`](Watchdog::dismiss) it does its
//! work, and ends.
//!
//! The watchdog is a fork and not a program: starting a program takes five times as
//! long and needs a file that may be gone by now, and the memory of a fork is ours
//! but for some pages. So this process must have one thread: a copy of a process
//! with several may find a lock taken by a thread that it does not have.
//!
//! The watchdog is a child of this process all the same, or each would leave a
//! zombie where orphans are not reaped, as in many containers. [`is_watchdog`]
//! tells it from the children that this process runs.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::signal::mask::BlockedMask;
use crate::time::Deadline;
use crate::{pidfd, pipe, poll, signal, unsupported, wait};

/// The handle of a watchdog, which lives until this process ends or dismisses it.
#[derive(Debug)]
pub struct Watchdog {
    /// The write end of a pipe that the watchdog reads: end of file is our end.
    life: std::fs::File,
    pid: i32,
    /// Descriptor of the watchdog, where a pidfd can be had.
    pidfd: Option<OwnedFd>,
}

/// The watchdog of this process, 0 for none. One at a time is all that is needed.
///
/// Relaxed: a number that guards no memory; the fork happens before any question.
static CURRENT: AtomicI32 = AtomicI32::new(0);

/// True if a child of this process is its watchdog.
pub fn is_watchdog(child: i32) -> bool {
    CURRENT.load(Ordering::Relaxed) == child
}

impl Watchdog {
    /// Ends the watchdog, which then does nothing. Returns once it is gone.
    pub fn dismiss(mut self) {
        // The watchdog may have been killed; then there is nothing to do.
        let _ = signal::without_sigpipe(|| self.life.write(b"."));
        if let Some(pidfd) = &self.pidfd {
            // SIGKILL spares the wait for its turn on the processor, and a wait for ever if
            // it is stopped.
            let _ = pidfd::send(pidfd.as_fd(), libc::SIGKILL);
            let mut fds = [poll::Fd::new(pidfd, poll::Flags::IN)];
            while poll::poll(&mut fds, Deadline::NEVER)
                .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
            {}
            let _ = wait::reap(self.pid, pidfd.as_fd());
        }
        CURRENT.store(0, Ordering::Relaxed);
    }
}

/// Starts a watchdog that has `fd` and calls `work` after the end of this process.
///
/// # Errors
/// `Unsupported` if this process has several threads, or cannot tell; those of
/// `fork(2)` and `pipe(2)`.
pub fn start(fd: BorrowedFd<'_>, work: impl FnOnce()) -> io::Result<Watchdog> {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if !matches!(threads, Ok(1)) {
        return Err(unsupported("a guard of a process with several threads"));
    }
    let (life, ours) = pipe::pipe()?;
    // Signals are blocked before the fork: no handler of ours, which writes to
    // descriptors that the copy has as well, must run there.
    let blocked = BlockedMask::all();
    // SAFETY: this process has one thread, so its copy may do all that this may.
    let child = unsafe { libc::fork() };
    let error = io::Error::last_os_error();
    if child == 0 {
        run_watchdog(&life, fd, work);
    }
    drop(blocked);
    if child < 0 {
        return Err(error);
    }
    CURRENT.store(child, Ordering::Relaxed);
    Ok(Watchdog {
        life: ours.into(),
        pid: child,
        // The number means the watchdog, which is not reaped yet.
        pidfd: pidfd::open(child).ok(),
    })
}

/// The life of the watchdog.
fn run_watchdog(life: &OwnedFd, fd: BorrowedFd<'_>, work: impl FnOnce()) -> ! {
    close_all_but(life.as_raw_fd(), fd.as_raw_fd());
    set_process_name();
    // SAFETY: system calls that take no memory of ours.
    unsafe {
        libc::setsid();
        // The root, so that no file system is kept from being unmounted.
        libc::chdir(c"/".as_ptr());
    }
    if wait_for_parent(life) {
        work();
    }
    // SAFETY: it runs no handlers and touches no memory.
    unsafe { libc::_exit(0) }
}

/// Names the watchdog in lists of processes.
fn set_process_name() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::thread::set_name(c"procwright-tty");
}

/// Waits until the parent has ended, and tells whether it did not dismiss us.
fn wait_for_parent(life: &OwnedFd) -> bool {
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

/// `close_range(2)`; false where there is no such call: before Linux 5.9, and
/// elsewhere.
///
/// # Safety
/// The descriptors are used no more.
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
