//! Forks of this process, and what became of them.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use super::{check, kill, mask, wait_for_end};

/// Reaps any child, as a careless host would; false if there is none.
pub(crate) fn reap_any() -> bool {
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) > 0 }
}

/// None if there is no such process.
pub(crate) fn pidfd(pid: i32) -> Option<OwnedFd> {
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ends a process that a test has left on purpose, and waits for that.
pub(crate) fn end(pid: i32) {
    if let Some(fd) = pidfd(pid) {
        kill(pid, libc::SIGKILL);
        wait_for_end(fd.as_fd());
    }
}

/// Forks a child that ends with the code that `body` gives, beside this process. It
/// dies with the thread that forks.
pub(crate) fn fork_running_aside(body: impl FnOnce() -> i32) -> i32 {
    let pid = try_fork(body);
    pid.unwrap_or_else(|| panic!("{}", std::io::Error::last_os_error()))
}

/// The same; none if no more processes may be had.
fn try_fork(body: impl FnOnce() -> i32) -> Option<i32> {
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::alarm(900);
            // Let out of here, a panic would end this thread alone, and leave a
            // process that says nothing, or has ended well.
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            libc::_exit(code.unwrap_or(101));
        }
        (pid > 0).then_some(pid)
    }
}

/// Runs `body` in a fork of this process, which then ends; how that ended, as
/// `wait(2)` tells it. Only for processes without other threads that `body`
/// could miss.
pub(crate) fn in_fork(body: impl FnOnce() -> i32) -> i32 {
    reap(fork_running_aside(body))
}

/// Runs `body` in a fork, and returns the code that it gives.
pub(crate) fn fork_running(body: impl FnOnce() -> i32) -> i32 {
    let status = in_fork(body);
    assert!(libc::WIFEXITED(status), "it was killed: {status:#x}");
    libc::WEXITSTATUS(status)
}

/// Forks a child that does something and ends.
pub(crate) fn fork_that(work: impl FnOnce()) -> i32 {
    fork_running_aside(|| {
        work();
        0
    })
}

fn pause_for_ever() -> i32 {
    loop {
        unsafe { libc::pause() };
    }
}

/// Forks a child that pauses until it is killed: cheaper than a program, and
/// what a test needs in thousands. It dies with this process.
pub(crate) fn fork_pausing() -> i32 {
    fork_running_aside(pause_for_ever)
}

/// As [`fork_pausing`]; none if no more processes may be had.
pub(crate) fn try_fork_pausing() -> Option<i32> {
    try_fork(pause_for_ever)
}

/// Forks a child that does something and then pauses until it is killed.
pub(crate) fn fork_pausing_after(work: impl FnOnce()) -> i32 {
    fork_running_aside(|| {
        work();
        pause_for_ever()
    })
}

/// Forks by a raw system call, of which no library is told, a child that pauses for at most
/// two minutes.
pub(crate) fn fork_unnoticed() -> i32 {
    unsafe {
        let pid = check(libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32);
        if pid == 0 {
            libc::alarm(120);
            loop {
                libc::pause();
            }
        }
        pid
    }
}

/// Forks a child that ends at once.
pub(crate) fn fork_exiting(code: i32) -> i32 {
    unsafe {
        let pid = check(libc::fork());
        if pid == 0 {
            libc::_exit(code);
        }
        pid
    }
}

/// Reaps a child of ours: its status as `wait(2)` tells it.
pub(crate) fn reap(pid: i32) -> i32 {
    let mut status = 0;
    assert_eq!(
        check(unsafe { libc::waitpid(pid, &mut status, 0) }),
        pid,
        "{}",
        std::io::Error::last_os_error()
    );
    status
}

/// A child of another process: of its first thread, the only one.
pub(crate) fn first_child(pid: i32) -> i32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("a living process");
    let first = children.split_whitespace().next().expect("a child");
    first.parse().expect("a number")
}

/// Forks a child that ends with this code once it has SIGUSR1.
pub(crate) fn fork_pausing_then_exiting(code: i32) -> i32 {
    // Blocked before the fork, so that the signal is not lost if it comes
    // before the child waits for it.
    mask(libc::SIGUSR1, true);
    let pid = fork_running_aside(|| unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGUSR1);
        let mut signal = 0;
        libc::sigwait(&set, &mut signal);
        code
    });
    mask(libc::SIGUSR1, false);
    pid
}

/// Forks a child that ends when somebody writes to this descriptor or closes the
/// other side.
pub(crate) fn fork_reading(fd: i32) {
    unsafe {
        if check(libc::fork()) == 0 {
            let mut byte = 0_u8;
            libc::read(fd, (&raw mut byte).cast(), 1);
            libc::_exit(0);
        }
    }
}

/// Forks a child that does something and lives on for a while after the end of its
/// parent.
pub(crate) fn fork_that_outlives(parent: i32, work: impl FnOnce()) {
    const MILLISECOND: u32 = 1000;
    unsafe {
        if check(libc::fork()) == 0 {
            libc::alarm(900);
            work();
            while libc::getppid() == parent {
                libc::usleep(MILLISECOND);
            }
            libc::usleep(20 * MILLISECOND);
            libc::_exit(0);
        }
    }
}

/// Forks a child that pauses, by the system call alone: nobody is told of it.
pub(crate) fn fork_quietly_pausing() -> i32 {
    unsafe {
        let pid = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32;
        if check(pid) == 0 {
            libc::syscall(
                libc::SYS_prctl,
                libc::PR_SET_PDEATHSIG,
                libc::SIGALRM,
                0,
                0,
                0,
            );
            loop {
                libc::pause();
            }
        }
        pid
    }
}
