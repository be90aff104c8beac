//! Forks of this process, and their ends.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use super::{check, kill, mask, wait_for_end};

/// Reaps any child, as a careless host would; false if there is none.
pub fn reap_any() -> bool {
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) > 0 }
}

/// A pidfd, or none if there is no such process.
pub fn pidfd(pid: i32) -> Option<OwnedFd> {
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Kills a process that a test has left on purpose, and waits for its end.
pub fn end(pid: i32) {
    if let Some(fd) = pidfd(pid) {
        kill(pid, libc::SIGKILL);
        wait_for_end(fd.as_fd());
    }
}

/// Forks a child that runs `body` beside this process and ends with its code. It dies
/// with the thread that forks.
pub fn fork_running_aside(body: impl FnOnce() -> i32) -> i32 {
    let pid = try_fork(body);
    pid.unwrap_or_else(|| panic!("{}", std::io::Error::last_os_error()))
}

/// Forks a child as [`fork_running_aside`] does; none if no more processes may be had.
fn try_fork(body: impl FnOnce() -> i32) -> Option<i32> {
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::alarm(900);
            // A panic that left this frame would end this thread alone: the process
            // would report nothing, or a good end.
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            libc::_exit(code.unwrap_or(101));
        }
        (pid > 0).then_some(pid)
    }
}

/// Runs `body` in a fork of this process, and waits for its end; returns the status as
/// `wait(2)` tells it. Only for processes without other threads that `body` could miss.
pub fn in_fork(body: impl FnOnce() -> i32) -> i32 {
    reap(fork_running_aside(body))
}

/// Forks; true if the descriptor of this number is closed in the fork.
pub fn is_closed_in_fork(number: i32) -> bool {
    fork_running(|| i32::from(unsafe { libc::fcntl(number, libc::F_GETFD) } == -1)) == 1
}

/// Runs `body` in a fork, and returns its code.
pub fn fork_running(body: impl FnOnce() -> i32) -> i32 {
    let status = in_fork(body);
    assert!(libc::WIFEXITED(status), "it was killed: {status:#x}");
    libc::WEXITSTATUS(status)
}

/// Forks a child that does `work` and ends.
pub fn fork_that(work: impl FnOnce()) -> i32 {
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

/// Forks a child that pauses until it is killed: cheaper than a program, for tests that
/// need thousands. It dies with this process.
pub fn fork_pausing() -> i32 {
    fork_running_aside(pause_for_ever)
}

/// Forks a child as [`fork_pausing`] does; none if no more processes may be had.
pub fn try_fork_pausing() -> Option<i32> {
    try_fork(pause_for_ever)
}

/// Makes a child that has not called exec the leader of a process group.
pub fn lead_a_group(child: i32) {
    check(unsafe { libc::setpgid(child, child) });
}

/// Forks a child that does `work` and then pauses until it is killed.
pub fn fork_pausing_after(work: impl FnOnce()) -> i32 {
    fork_running_aside(|| {
        work();
        pause_for_ever()
    })
}

/// Forks by a raw system call, unnoticed by the C library, a child that pauses for at
/// most two minutes.
pub fn fork_unnoticed() -> i32 {
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
pub fn fork_exiting(code: i32) -> i32 {
    unsafe {
        let pid = check(libc::fork());
        if pid == 0 {
            libc::_exit(code);
        }
        pid
    }
}

/// Kills a child of this process, and reaps it.
pub fn kill_and_reap(pid: i32) {
    super::kill(pid, libc::SIGKILL);
    reap(pid);
}

/// Reaps a child of this process; returns the status as `wait(2)` tells it.
pub fn reap(pid: i32) -> i32 {
    let mut status = 0;
    assert_eq!(
        check(unsafe { libc::waitpid(pid, &mut status, 0) }),
        pid,
        "{}",
        std::io::Error::last_os_error()
    );
    status
}

/// The first child of another process, of its only thread.
pub fn first_child(pid: i32) -> i32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("a living process");
    let first = children.split_whitespace().next().expect("a child");
    first.parse().expect("a number")
}

/// Forks a child that ends with this code once it gets SIGUSR1.
pub fn fork_pausing_then_exiting(code: i32) -> i32 {
    // Blocked before the fork, so that a signal is not lost that comes before the child
    // waits for it.
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

/// Forks a child that ends when this descriptor has a byte to read or its other side is
/// closed.
pub fn fork_reading(fd: i32) {
    unsafe {
        if check(libc::fork()) == 0 {
            let mut byte = 0_u8;
            libc::read(fd, (&raw mut byte).cast(), 1);
            libc::_exit(0);
        }
    }
}

/// Forks a child that does `work` and lives on for a while after the end of its parent.
pub fn fork_that_outlives(parent: i32, work: impl FnOnce()) {
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

/// Forks a child that pauses, by the system call alone: the C library does not notice.
pub fn fork_quietly_pausing() -> i32 {
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
