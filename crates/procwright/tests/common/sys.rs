//! System calls of the tests themselves.
#![allow(clippy::undocumented_unsafe_blocks)] // plain calls, pointers to locals only

pub(crate) mod held;
pub(crate) mod steps;

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

fn check(result: i32) -> i32 {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

pub(crate) fn effective_uid() -> u32 {
    unsafe { libc::geteuid() }
}

pub(crate) fn uid() -> u32 {
    unsafe { libc::getuid() }
}

pub(crate) fn pgid() -> i32 {
    unsafe { libc::getpgrp() }
}

pub(crate) fn sid() -> i32 {
    unsafe { libc::getsid(0) }
}

pub(crate) fn umask() -> u32 {
    unsafe {
        let mask = libc::umask(0o022);
        libc::umask(mask);
        mask
    }
}

pub(crate) fn niceness() -> i32 {
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Ends this process by SIGALRM after a while.
pub(crate) fn alarm(seconds: u32) {
    unsafe { libc::alarm(seconds) };
}

/// Becomes another user in all threads, for good.
pub(crate) fn become_user(uid: u32) {
    check(unsafe { libc::setgroups(0, std::ptr::null()) });
    check(unsafe { libc::setresgid(uid, uid, uid) });
    check(unsafe { libc::setresuid(uid, uid, uid) });
    // The change makes /proc/self root's; tests look there.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) });
}

/// Becomes another user in all threads, with a way back.
pub(crate) fn pass_for_user(uid: u32) {
    check(unsafe { libc::setresuid(uid, uid, 0) });
}

/// The way back.
pub(crate) fn become_root_again() {
    check(unsafe { libc::setresuid(0, 0, 0) });
}

pub(crate) fn ignore(signal: i32) {
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

pub(crate) fn default(signal: i32) {
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

extern "C" fn nothing(_: i32) {}

pub(crate) fn handle(signal: i32) {
    let handler: extern "C" fn(i32) = nothing;
    unsafe { libc::signal(signal, handler as libc::sighandler_t) };
}

/// Every signal to its default.
pub(crate) fn default_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        if ![32, 33, libc::SIGKILL, libc::SIGSTOP].contains(&signal) {
            default(signal);
        }
    }
}

/// Blocks or unblocks a signal in this thread.
pub(crate) fn mask(signal: i32, block: bool) {
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        let how = if block {
            libc::SIG_BLOCK
        } else {
            libc::SIG_UNBLOCK
        };
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
    }
}

pub(crate) fn kill(pid: i32, signal: i32) -> bool {
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Reaps any child, as a careless host would; false if there is none.
pub(crate) fn reap_any() -> bool {
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) > 0 }
}

pub(crate) fn set_nofile(soft: u64) {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit));
        limit.rlim_cur = soft;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &limit));
    }
}

pub(crate) fn nofile() -> u64 {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit));
        limit.rlim_cur
    }
}

/// A copy that is inherited across exec.
pub(crate) fn inheritable(fd: &impl AsRawFd) -> OwnedFd {
    unsafe { OwnedFd::from_raw_fd(check(libc::dup(fd.as_raw_fd()))) }
}

/// A close-on-exec copy at this very number, whatever was there.
pub(crate) fn copy_at(fd: &impl AsRawFd, number: RawFd) -> OwnedFd {
    assert_ne!(fd.as_raw_fd(), number);
    unsafe { OwnedFd::from_raw_fd(check(libc::dup3(fd.as_raw_fd(), number, libc::O_CLOEXEC))) }
}

/// Closes stdin, stdout and stderr; they come back when this is dropped.
pub(crate) struct NoStandard([OwnedFd; 3]);

impl NoStandard {
    pub(crate) fn close() -> NoStandard {
        let saved = [0, 1, 2].map(|fd| unsafe {
            OwnedFd::from_raw_fd(check(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 200)))
        });
        for fd in 0..3 {
            unsafe { libc::close(fd) };
        }
        NoStandard(saved)
    }
}

impl Drop for NoStandard {
    fn drop(&mut self) {
        for (fd, saved) in (0..3).zip(&self.0) {
            unsafe { libc::dup2(saved.as_raw_fd(), fd) };
        }
    }
}

/// Makes system calls fail with `errno` in all threads and children.
pub(crate) fn deny(calls: &[i64], errno: i32) {
    filter(calls, SeccompAction::Errno(errno as u32));
}

/// Makes system calls end this process.
pub(crate) fn kill_on(calls: &[i64]) {
    filter(calls, SeccompAction::KillProcess);
}

fn filter(calls: &[i64], action: SeccompAction) {
    seccompiler::apply_filter_all_threads(&program(calls, action)).expect("seccomp");
}

fn program(calls: &[i64], action: SeccompAction) -> BpfProgram {
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        calls.iter().map(|call| (*call, Vec::new())).collect();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        action,
        std::env::consts::ARCH.try_into().expect("a known machine"),
    )
    .expect("a filter");
    filter.try_into().expect("a program")
}

/// Makes system calls end this process if this thread makes them.
pub(crate) fn kill_on_in_this_thread(calls: &[i64]) {
    let program = program(calls, SeccompAction::KillProcess);
    seccompiler::apply_filter(&program).expect("seccomp");
}

/// Waits until the process that this names has ended.
pub(crate) fn wait_for_end(pidfd: BorrowedFd<'_>) {
    let mut fd = libc::pollfd {
        fd: pidfd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    while unsafe { libc::poll(&mut fd, 1, -1) } < 1 {}
}

/// None if there is no such process.
pub(crate) fn pidfd(pid: i32) -> Option<OwnedFd> {
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ends a process that a test has left on purpose, and waits for that.
pub(crate) fn end(pid: i32) {
    if let Some(fd) = pidfd(pid) {
        use std::os::fd::AsFd;
        kill(pid, libc::SIGKILL);
        wait_for_end(fd.as_fd());
    }
}

/// The size of the pipe behind a descriptor.
pub(crate) fn pipe_size(fd: &impl AsRawFd) -> i32 {
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETPIPE_SZ) })
}

/// Raises the soft limit of descriptors to the hard one, and says what it is.
pub(crate) fn all_files() -> u64 {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit));
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &limit));
        limit.rlim_max
    }
}

/// How often this thread has gone to sleep of its own will.
pub(crate) fn sleeps() -> i64 {
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        check(libc::getrusage(libc::RUSAGE_THREAD, &mut usage));
        usage.ru_nvcsw
    }
}

/// This thread, for [`signal_thread`].
pub(crate) fn thread_id() -> i32 {
    unsafe { libc::gettid() }
}

/// Sends a signal to a thread of this process.
pub(crate) fn signal_thread(thread: i32, signal: i32) {
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: i32) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Handles a signal by counting it; system calls that it interrupts are not
/// restarted.
pub(crate) fn count_signal(signal: i32) {
    let handler: extern "C" fn(i32) = count;
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        check(libc::sigaction(signal, &action, std::ptr::null_mut()));
    }
}

/// How many signals were counted.
pub(crate) fn counted() -> u64 {
    HANDLED.load(Ordering::Relaxed)
}

/// Sends a signal to this thread every so many microseconds, until it is
/// dropped. To the thread: one for the process goes to whichever thread the
/// kernel likes, mostly the first.
pub(crate) struct Pester(libc::timer_t);

impl Pester {
    pub(crate) fn this_thread(signal: i32, micros: i64) -> Pester {
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: micros * 1000,
        };
        let time = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = thread_id();
            let mut timer = std::ptr::null_mut();
            check(libc::timer_create(
                libc::CLOCK_MONOTONIC,
                &mut event,
                &mut timer,
            ));
            check(libc::timer_settime(timer, 0, &time, std::ptr::null_mut()));
            Pester(timer)
        }
    }
}

impl Drop for Pester {
    fn drop(&mut self) {
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Runs `body` in a fork of this process, which then ends; how that ended, as
/// `wait(2)` tells it. Only for processes without other threads that `body`
/// could miss.
pub(crate) fn in_fork(body: impl FnOnce() -> i32) -> i32 {
    unsafe {
        let pid = check(libc::fork());
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            libc::_exit(code.unwrap_or(101));
        }
        let mut status = 0;
        check(libc::waitpid(pid, &mut status, 0));
        status
    }
}

/// Forks a child that pauses until it is killed: cheaper than a program, and
/// what a test needs in thousands. It dies with this process.
pub(crate) fn fork_pausing() -> i32 {
    unsafe {
        let pid = check(libc::fork());
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::alarm(900);
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

/// Gives this thread pid and mount namespaces: its next child is the first
/// process of the new one. False if that may not be, as in most containers.
pub(crate) fn unshare_pids() -> bool {
    unsafe { libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNS) == 0 }
}

/// Mounts a `/proc` of the pid namespace that this process is in.
pub(crate) fn mount_proc() {
    unsafe {
        let none = std::ptr::null();
        check(libc::mount(
            none,
            c"/".as_ptr(),
            none,
            libc::MS_REC | libc::MS_PRIVATE,
            none.cast(),
        ));
        check(libc::mount(
            c"proc".as_ptr(),
            c"/proc".as_ptr(),
            c"proc".as_ptr(),
            0,
            none.cast(),
        ));
    }
}

/// Sets the soft and the hard limit of descriptors.
pub(crate) fn limit_files(n: u64) {
    let limit = libc::rlimit {
        rlim_cur: n,
        rlim_max: n,
    };
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) });
}

/// Leaves this process no path but those in a directory.
pub(crate) fn chroot(directory: &std::path::Path) {
    std::os::unix::fs::chroot(directory).expect("root");
    std::env::set_current_dir("/").expect("the new root");
}

/// Makes an ioctl fail with `errno` whose number, without the size of what it is
/// passed, is this.
pub(crate) fn deny_ioctl(request: u64, errno: i32) {
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};
    let condition = SeccompCondition::new(
        1,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(0xffff),
        request,
    );
    let rule = SeccompRule::new(vec![condition.expect("a condition")]).expect("a rule");
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_ioctl, vec![rule])]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    seccompiler::apply_filter_all_threads(&program).expect("seccomp");
}

/// `PIDFD_GET_INFO` of `linux/pidfd.h`, without its size.
pub(crate) const PIDFD_GET_INFO: u64 = 0xff0b;

/// A child of another process: of its first thread, the only one.
pub(crate) fn first_child(pid: i32) -> i32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("a living process");
    let first = children.split_whitespace().next().expect("a child");
    first.parse().expect("a number")
}

/// Forks a child that ends with this code once it has SIGUSR1.
pub(crate) fn fork_pausing_then_exiting(code: i32) -> i32 {
    unsafe {
        // Blocked before the fork, so that the signal is not lost if it comes
        // before the child waits for it.
        mask(libc::SIGUSR1, true);
        let pid = check(libc::fork());
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::alarm(900);
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGUSR1);
            let mut signal = 0;
            libc::sigwait(&set, &mut signal);
            libc::_exit(code);
        }
        mask(libc::SIGUSR1, false);
        pid
    }
}

/// Whether a descriptor is readable now.
pub(crate) fn readable(fd: BorrowedFd<'_>) -> bool {
    let mut fd = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    check(unsafe { libc::poll(&mut fd, 1, 0) }) == 1
}

/// Whether this is the number of one of the system calls that wait.
pub(crate) fn is_waiting_call(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    let old = [libc::SYS_poll, libc::SYS_epoll_wait];
    #[cfg(not(target_arch = "x86_64"))]
    let old = [];
    [libc::SYS_ppoll, libc::SYS_epoll_pwait].contains(&number) || old.contains(&number)
}

/// Runs `body` in a fork, and returns the code that it gives.
pub(crate) fn fork_running(body: impl FnOnce() -> i32) -> i32 {
    unsafe {
        let pid = check(libc::fork());
        if pid == 0 {
            libc::alarm(60);
            libc::_exit(body());
        }
        libc::WEXITSTATUS(reap(pid))
    }
}

/// Forks a child that does something and then pauses until it is killed.
pub(crate) fn fork_pausing_after(work: impl FnOnce()) -> i32 {
    unsafe {
        let pid = check(libc::fork());
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::alarm(900);
            work();
            loop {
                libc::pause();
            }
        }
        pid
    }
}

/// Sets a variable of this process's environment, before it has other threads
/// that could look.
pub(crate) fn set_variable(name: &str, value: &std::path::Path) {
    unsafe { std::env::set_var(name, value) };
}

/// Mounts a file system in memory of this size, seen by this thread and those
/// that it starts. False where a sandbox forbids it.
pub(crate) fn mount_memory(directory: &std::path::Path, bytes: u64) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let target = std::ffi::CString::new(directory.as_os_str().as_bytes()).expect("no NUL");
    let options = std::ffi::CString::new(format!("size={bytes}")).expect("no NUL");
    let none = std::ptr::null();
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                none,
                c"/".as_ptr(),
                none,
                libc::MS_REC | libc::MS_PRIVATE,
                none.cast(),
            ) == 0
            && libc::mount(
                c"tmpfs".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                options.as_ptr().cast(),
            ) == 0
    }
}

/// Sets the soft limit on the size of files.
pub(crate) fn limit_addresses(bytes: u64) {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_AS, &mut limit));
        limit.rlim_cur = bytes.min(limit.rlim_max);
        check(libc::setrlimit(libc::RLIMIT_AS, &limit));
    }
}

pub(crate) fn limit_file_size(bytes: u64) {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit));
        limit.rlim_cur = bytes;
        check(libc::setrlimit(libc::RLIMIT_FSIZE, &limit));
    }
}

/// Whether a blocked signal waits for this thread or process.
pub(crate) fn is_pending(signal: i32) -> bool {
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigpending(&mut set);
        libc::sigismember(&set, signal) == 1
    }
}

/// Puts the file of one descriptor under the number of another.
pub(crate) fn replace(with: std::os::fd::RawFd, number: std::os::fd::RawFd) {
    assert_eq!(unsafe { libc::dup2(with, number) }, number);
}

/// Ends this process as nobody can prevent.
pub(crate) fn kill_ourselves() {
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Ends this process without a look back.
pub(crate) fn exit_now() {
    unsafe { libc::_exit(0) }
}

/// Aborts with a core dump, of which little is kept.
pub(crate) fn dump_core() {
    unsafe {
        let limit = libc::rlimit {
            rlim_cur: 64 * 1024,
            rlim_max: 64 * 1024,
        };
        check(libc::setrlimit(libc::RLIMIT_CORE, &limit));
        libc::abort()
    }
}

/// Becomes another program.
pub(crate) fn exec(words: &[std::ffi::CString]) {
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
    panic!("{}", std::io::Error::last_os_error());
}

/// Ends this thread alone, and runs nothing on the way.
pub(crate) fn end_thread() {
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Until the first thread of this process is a zombie.
pub(crate) fn wait_until_main_has_ended() {
    loop {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        if stat
            .rsplit_once(')')
            .unwrap()
            .1
            .trim_start()
            .starts_with('Z')
        {
            return;
        }
        std::thread::yield_now();
    }
}

/// Writes to a descriptor by its number.
pub(crate) fn tell(fd: i32, bytes: &[u8]) {
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

/// Reads a byte from a descriptor by its number, or its end.
pub(crate) fn await_order(fd: i32) {
    let mut byte = 0_u8;
    unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
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

/// Leaves as many namespaces as this user may.
pub(crate) fn unshare_what_may_be() {
    unsafe {
        libc::unshare(libc::CLONE_NEWUTS | libc::CLONE_NEWIPC | libc::CLONE_NEWNET);
        libc::unshare(libc::CLONE_NEWPID);
        libc::unshare(libc::CLONE_FILES | libc::CLONE_FS);
    }
}

/// Closes a descriptor behind its owner's back: in a fork that goes on without it.
pub(crate) fn close(fd: &impl AsRawFd) {
    unsafe { libc::close(fd.as_raw_fd()) };
}
