//! What the children of tests need and no library code may use.
#![allow(clippy::undocumented_unsafe_blocks)] // plain calls without pointers

/// Forks; 0 in the child. Only for processes that were started for a test and
/// whose other threads hold no lock that the child needs.
pub(crate) fn fork() -> i32 {
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        watchdog();
    }
    pid
}

/// Ends this process in a minute, whatever became of its test.
pub(crate) fn watchdog() {
    alarm(60);
}

/// The same after so many seconds.
pub(crate) fn alarm(seconds: u32) {
    unsafe { libc::alarm(seconds) };
}

pub(crate) fn ignore(signal: i32) {
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

pub(crate) fn setsid() {
    assert!(unsafe { libc::setsid() } > 0);
}

pub(crate) fn own_group() {
    assert_eq!(unsafe { libc::setpgid(0, 0) }, 0);
}

pub(crate) fn raise(signal: i32) {
    unsafe { libc::raise(signal) };
}

pub(crate) fn pause_for_ever() -> ! {
    loop {
        unsafe { libc::pause() };
    }
}

pub(crate) fn exit(code: i32) -> ! {
    unsafe { libc::_exit(code) }
}

pub(crate) fn close_standard() {
    for fd in 0..3 {
        unsafe { libc::close(fd) };
    }
}

/// Waits for a child to end, or to stop with `stopped`.
pub(crate) fn wait(pid: i32, stopped: bool) {
    let mut status = 0;
    let flags = if stopped { libc::WUNTRACED } else { 0 };
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, flags) }, pid);
}

/// Reaps whatever has ended; the number reaped.
pub(crate) fn reap_all() -> usize {
    let mut reaped = 0;
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {
        reaped += 1;
    }
    reaped
}

pub(crate) fn become_reaper() {
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
}

pub(crate) fn become_user(uid: u32) {
    assert_eq!(unsafe { libc::setuid(uid) }, 0);
}

pub(crate) fn limit_files(n: u64) {
    let limit = libc::rlimit {
        rlim_cur: n,
        rlim_max: n,
    };
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

/// Waits for a child to end: its exit code, 128 and more for a signal.
pub(crate) fn wait_code(pid: i32) -> i32 {
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    match libc::WIFEXITED(status) {
        true => libc::WEXITSTATUS(status),
        false => 128 + libc::WTERMSIG(status),
    }
}
