//! Unsafe plain calls for the children of tests, which no library code may use.
#![allow(clippy::undocumented_unsafe_blocks)] // plain calls without pointers

/// Forks; 0 in the child. Only for processes that were started for a test and whose
/// other threads hold no lock that the child needs.
pub fn fork() -> i32 {
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        watchdog();
    }
    pid
}

/// Ends this process in a minute, whatever became of its test.
pub fn watchdog() {
    alarm(60);
}

/// Ends this process after so many seconds.
pub fn alarm(seconds: u32) {
    unsafe { libc::alarm(seconds) };
}

/// Ignores a signal.
pub fn ignore(signal: i32) {
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Starts a session.
pub fn setsid() {
    assert!(unsafe { libc::setsid() } > 0);
}

/// Makes this process the leader of a group of its own.
pub fn own_group() {
    assert_eq!(unsafe { libc::setpgid(0, 0) }, 0);
}

/// Sends this thread a signal.
pub fn raise(signal: i32) {
    unsafe { libc::raise(signal) };
}

/// Pauses until a signal ends this process.
pub fn pause_for_ever() -> ! {
    loop {
        unsafe { libc::pause() };
    }
}

/// Ends this process without clean-up.
pub fn exit(code: i32) -> ! {
    unsafe { libc::_exit(code) }
}

/// Closes stdin, stdout and stderr.
pub fn close_standard() {
    for fd in 0..3 {
        unsafe { libc::close(fd) };
    }
}

/// Waits for a child to end, or, with `stopped`, to stop.
pub fn wait(pid: i32, stopped: bool) {
    let mut status = 0;
    let flags = if stopped { libc::WUNTRACED } else { 0 };
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, flags) }, pid);
}

/// Reaps every child that has ended; returns their number.
pub fn reap_all() -> usize {
    let mut reaped = 0;
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {
        reaped += 1;
    }
    reaped
}

/// Makes this process a subreaper, which adopts its orphaned descendants.
pub fn become_reaper() {
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
}

/// Becomes another user, for good.
pub fn become_user(uid: u32) {
    assert_eq!(unsafe { libc::setuid(uid) }, 0);
}

/// Sets the soft and the hard limit of descriptors.
pub fn limit_files(n: u64) {
    let limit = libc::rlimit {
        rlim_cur: n,
        rlim_max: n,
    };
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

/// Waits for a child to end; returns its exit code, or 128 and the signal's number.
pub fn wait_code(pid: i32) -> i32 {
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    match libc::WIFEXITED(status) {
        true => libc::WEXITSTATUS(status),
        false => 128 + libc::WTERMSIG(status),
    }
}

/// Panics in a fork that has inherited a lock held, by a thread that it has not. Returns how
/// the fork has ended: a code of 0, or 128 and the number of the signal that the watchdog sends
/// to one that waits for the lock. For a thread of a test alone, which ends in the fork.
pub fn panic_in_fork<T>(held: T) -> i32 {
    let pid = fork();
    if pid == 0 {
        std::mem::forget(held);
        // Without a word, which would take locks as well.
        std::panic::resume_unwind(Box::new("in the fork"));
    }
    drop(held);
    wait_code(pid)
}
