//! Linux: `clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD)` and raw calls.
//!
//! Why not `posix_spawn`: it has no working directory before glibc 2.29, no
//! umask, no limits, no groups, reports an error without its step, and gives no
//! pidfd before glibc 2.39. Why not `fork`: it copies the page tables of the
//! parent, 0.5 ms for each resident 100 MiB or so.
//!
//! The child shares our memory until its exec, on a stack of its own, while our
//! calling thread is suspended in the clone. So it may only make system calls
//! and write to its own stack and to [`Report`]. Three things follow:
//! - all signals are blocked across the clone, and the child resets every
//!   handler before it unblocks them: a handler of ours must not run in it;
//! - it never unwinds: no operation in it can panic;
//! - a change of credentials happens in a copy of the memory (no `CLONE_VM`):
//!   a process with other credentials that shares our memory could be traced
//!   into it by whoever it has become.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use super::{Action, Failed, Plan, SLOTS, Signed, Spawned, Where};

/// Enough for the deepest path through [`child`], debug builds included; the
/// pages that it does not reach are never touched.
const STACK: usize = 64 * 1024;

/// What the child leaves for its parent. Written by one, read by the other only
/// after the first has gone: the atomics are for the compiler.
struct Report {
    /// Index of the failed action, [`EXEC`] or [`NOTHING`].
    step: AtomicI32,
    errno: AtomicI32,
}

const NOTHING: i32 = -1;
const EXEC: i32 = -2;

struct Context<'a> {
    plan: &'a Plan,
    argv: &'a [*const c_char],
    envp: &'a [*const c_char],
    report: &'a Report,
}

pub(crate) fn spawn(plan: &Plan) -> Result<Spawned, Failed> {
    if plan.changes_credentials {
        let shared = SharedReport::new().map_err(Failed::Clone)?;
        start(plan, shared.get(), 0)
    } else {
        let report = Report {
            step: AtomicI32::new(NOTHING),
            errno: AtomicI32::new(0),
        };
        start(plan, &report, libc::CLONE_VM)
    }
}

fn start(plan: &Plan, report: &Report, memory: c_int) -> Result<Spawned, Failed> {
    let argv = pointers(&plan.argv, &[]);
    let envp = pointers(&plan.env, &plan.signed);
    let context = Context {
        plan,
        argv: &argv,
        envp: &envp,
        report,
    };
    let mut stack: Vec<MaybeUninit<u128>> = Vec::with_capacity(STACK / size_of::<u128>());
    let mut pidfd: c_int = -1;
    let flags = memory | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;

    let blocked = BlockedSignals::all();
    // SAFETY:
    // [1] The stack is ours alone and as large as its capacity; it grows down
    //     from its aligned end.
    // [2] CLONE_VFORK suspends us until the child has called exec or exited, so
    //     everything in `context` outlives its use.
    // [3] `child` makes system calls only, see there.
    let pid = unsafe {
        libc::clone(
            child,
            stack.as_mut_ptr().add(stack.capacity()).cast::<c_void>(),
            flags,
            (&raw const context).cast_mut().cast::<c_void>(),
            &raw mut pidfd,
        )
    };
    let error = io::Error::last_os_error();
    drop(blocked);
    if pid < 0 {
        return Err(Failed::Clone(error));
    }
    if pidfd < 0 {
        // A kernel, or a sandbox that plays one, that does not know the flag.
        // SAFETY: the child is ours and not reaped, so the number is its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        reap_failed(pid);
        return Err(Failed::Clone(crate::sys::unsupported(
            "a process descriptor",
        )));
    }
    // SAFETY: the clone has succeeded, so the kernel has put a new descriptor
    // here that nobody else knows.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let errno = || io::Error::from_raw_os_error(report.errno.load(Ordering::Relaxed));
    let failed = match report.step.load(Ordering::Relaxed) {
        NOTHING => {
            return Ok(Spawned {
                pid,
                pidfd,
                parent_peak: own_peak(),
            });
        }
        EXEC => Failed::Exec(errno()),
        action => Failed::Action(usize::try_from(action).unwrap_or(0), errno()),
    };
    reap_failed(pid);
    Err(failed)
}

/// The most memory that this process has occupied, in bytes.
fn own_peak() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to writable memory of the right type, in which
    // zeroes are a valid value should the call fail.
    let peak = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init().ru_maxrss
    };
    u64::try_from(peak).unwrap_or(0) * 1024
}

/// Collects a child that never became its program: it has exited already or is
/// about to, so this wait is short. By pid, which cannot be reused before.
fn reap_failed(pid: i32) {
    // SAFETY: waitpid with no status pointer touches no memory of ours.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

fn pointers(strings: &[CString], signed: &[Signed]) -> Vec<*const c_char> {
    let strings = strings.iter().map(|s| s.as_ptr());
    let mut all: Vec<_> = strings.chain(signed.iter().map(Signed::as_ptr)).collect();
    all.push(ptr::null());
    all
}

/// The child's life between clone and exec.
extern "C" fn child(context: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to a Context that outlives us.
    let context = unsafe { &*context.cast::<Context<'_>>() };
    let mut slots = [-1; SLOTS];
    for (index, action) in (0..).zip(&context.plan.actions) {
        if !act(action, &mut slots) {
            return fail(context.report, index);
        }
    }
    for signed in &context.plan.signed {
        // SAFETY: a system call without arguments. Raw, since an old C library
        // remembers the number, and its memory is that of our parent.
        let number = unsafe { libc::syscall(libc::SYS_getpid) };
        signed.sign(number as u32);
    }
    let mut errno = libc::ENOENT;
    for program in &context.plan.programs {
        // SAFETY: the arrays end with a null pointer and their strings outlive
        // the call.
        unsafe {
            libc::execve(
                program.as_ptr(),
                context.argv.as_ptr(),
                context.envp.as_ptr(),
            );
        }
        match last_errno() {
            // A path, or the only directory: nothing is searched, and this is why.
            libc::ENOTDIR if context.plan.programs.len() == 1 => errno = libc::ENOTDIR,
            // Not here: try the next directory of PATH, as execvp does.
            libc::ENOENT | libc::ENOTDIR => {}
            // Perhaps elsewhere; but if not, this is what to report.
            libc::EACCES => errno = libc::EACCES,
            other => {
                errno = other;
                break;
            }
        }
    }
    context.report.errno.store(errno, Ordering::Relaxed);
    context.report.step.store(EXEC, Ordering::Relaxed);
    exit_now()
}

fn fail(report: &Report, index: i32) -> c_int {
    report.errno.store(last_errno(), Ordering::Relaxed);
    report.step.store(index, Ordering::Relaxed);
    exit_now()
}

fn exit_now() -> ! {
    // SAFETY: _exit runs no handlers and touches no memory.
    unsafe { libc::_exit(127) }
}

fn last_errno() -> c_int {
    // SAFETY: the thread's errno, which we share with our suspended parent.
    unsafe { *libc::__errno_location() }
}

/// Takes one step; false with errno set if it failed.
///
/// Raw system calls where the C library does more than call: its setuid family
/// signals all threads of "the process", which it takes from memory that we
/// share.
fn act(action: &Action, slots: &mut [c_int; SLOTS]) -> bool {
    // SAFETY: plain system calls on values prepared by the parent; every
    // pointer is to memory of the plan, which outlives us.
    unsafe {
        match action {
            Action::Setsid => libc::setsid() >= 0,
            // 0: not one that controls another session already.
            Action::ControllingTerminal(fd) => libc::ioctl(*fd, libc::TIOCSCTTY, 0) == 0,
            Action::Setpgid(group) => libc::setpgid(0, *group) == 0,
            Action::Foreground { terminal, from } => {
                let mut front: libc::pid_t = 0;
                let asked = libc::ioctl(*terminal, libc::TIOCGPGRP, &raw mut front) == 0;
                if asked && front == *from {
                    // Our number in our own namespace, as the call takes it.
                    let own = libc::getpid();
                    // SIGTTOU, which would stop us here, is blocked.
                    libc::ioctl(*terminal, libc::TIOCSPGRP, &raw const own);
                }
                true
            }
            Action::Rlimit {
                resource,
                soft,
                hard,
            } => {
                let limit = libc::rlimit64 {
                    rlim_cur: *soft,
                    rlim_max: *hard,
                };
                libc::syscall(
                    libc::SYS_prlimit64,
                    0,
                    *resource,
                    &raw const limit,
                    ptr::null_mut::<libc::rlimit64>(),
                ) == 0
            }
            Action::Nice(value) => {
                libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, *value) == 0
            }
            Action::Setgroups(groups) => {
                libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0
            }
            Action::Setgid(gid) => libc::syscall(libc::SYS_setresgid, *gid, *gid, *gid) == 0,
            Action::Setuid(uid) => libc::syscall(libc::SYS_setresuid, *uid, *uid, *uid) == 0,
            Action::DieWithParent { signal, parent } => {
                if libc::prctl(libc::PR_SET_PDEATHSIG, *signal) != 0 {
                    return false;
                }
                // The parent may have died before the request stood: then
                // nobody will ever send the signal.
                if libc::syscall(libc::SYS_getppid) != i64::from(*parent) {
                    exit_now();
                }
                true
            }
            Action::Chdir(directory) => libc::chdir(directory.as_ptr()) == 0,
            Action::Umask(mask) => {
                libc::umask(*mask);
                true
            }
            Action::CloseFrom(first) => close_from(*first),
            Action::Park { from, above, slot } => {
                let copy = libc::fcntl(*from, libc::F_DUPFD_CLOEXEC, *above);
                match slots.get_mut(*slot) {
                    Some(slot) => *slot = copy,
                    None => return false,
                }
                copy >= 0
            }
            Action::Place { from, to } => {
                let from = match from {
                    Where::Fd(fd) => *fd,
                    Where::Slot(slot) => slots.get(*slot).copied().unwrap_or(-1),
                };
                if from == *to {
                    // dup2 onto itself would leave the close-on-exec flag.
                    libc::fcntl(from, libc::F_SETFD, 0) == 0
                } else {
                    libc::dup2(from, *to) >= 0
                }
            }
            Action::ResetSignals => reset_signals(),
        }
    }
}

/// Marks everything from `first` on close-on-exec. Not closed at once: the list
/// of actions may still need them, and a failed exec must be able to report.
fn close_from(first: c_int) -> bool {
    // SAFETY: a system call on numbers.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            c_int::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    // Linux before 5.11, or a sandbox that does not know the call.
    done == 0 || close_from_by_listing(first)
}

/// The slow way: reads the child's own descriptor table. With raw getdents,
/// since readdir allocates.
fn close_from_by_listing(first: c_int) -> bool {
    // SAFETY: a terminated path, and a buffer of the size that is passed.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let dir = libc::open(c"/proc/self/fd".as_ptr(), flags);
        if dir < 0 {
            return false;
        }
        let mut buffer = [0u8; 2048];
        loop {
            let n = libc::syscall(libc::SYS_getdents64, dir, buffer.as_mut_ptr(), buffer.len());
            let Ok(n) = usize::try_from(n) else {
                return false;
            };
            if n == 0 {
                break;
            }
            let mut rest = buffer.get(..n).unwrap_or(&[]);
            // struct linux_dirent64: inode 8, offset 8, length 2, type 1, name.
            while let (Some(&[low, high]), Some(name)) = (
                rest.get(16..18).and_then(<[u8]>::first_chunk::<2>),
                rest.get(19..),
            ) {
                if let Some(fd) = leading_number(name)
                    && fd >= first
                {
                    libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
                }
                let length = usize::from(u16::from_ne_bytes([low, high]));
                rest = rest.get(length.max(1)..).unwrap_or(&[]);
            }
        }
        libc::close(dir);
    }
    true
}

/// The number that a terminated directory entry consists of; none for dots.
fn leading_number(name: &[u8]) -> Option<c_int> {
    let mut number: Option<c_int> = None;
    for &byte in name {
        if !byte.is_ascii_digit() {
            break;
        }
        let digit = c_int::from(byte - b'0');
        number = Some(number.unwrap_or(0).wrapping_mul(10).wrapping_add(digit));
    }
    number
}

/// Signals that a language runtime or a host ignores for itself (Rust and
/// Python both ignore SIGPIPE) but that a fresh program counts on. What the
/// user had ignored on purpose stays so: SIGHUP under nohup, SIGINT and SIGQUIT
/// of a shell's background job.
const EXPECTED: [c_int; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];

fn reset_signals() -> bool {
    // SAFETY: zeroed is a valid sigaction (the default handler, no flags), and
    // the pointers are to locals. The C library refuses the two numbers that it
    // keeps for itself, which only its own threads can send.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        let mut current: libc::sigaction = MaybeUninit::zeroed().assume_init();
        for signal in 1..=libc::SIGRTMAX() {
            if libc::sigaction(signal, ptr::null(), &raw mut current) != 0 {
                continue;
            }
            let ignored = current.sa_sigaction == libc::SIG_IGN;
            let caught = !ignored && current.sa_sigaction != libc::SIG_DFL;
            if caught || (ignored && EXPECTED.contains(&signal)) {
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
        set_mask(&0)
    }
}

/// Sets the calling thread's whole signal mask. Raw, because the C library
/// keeps two signals out of every mask.
fn set_mask(mask: &u64) -> bool {
    // SAFETY: the kernel reads eight bytes.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            ptr::from_ref(mask),
            ptr::null_mut::<u64>(),
            size_of::<u64>(),
        ) == 0
    }
}

/// All signals of this thread are blocked while this lives.
struct BlockedSignals {
    before: u64,
}

impl BlockedSignals {
    fn all() -> BlockedSignals {
        let mut before = 0u64;
        let all = u64::MAX;
        // SAFETY: the kernel reads and writes eight bytes.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                &raw const all,
                &raw mut before,
                size_of::<u64>(),
            );
        }
        BlockedSignals { before }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        set_mask(&self.before);
    }
}

/// A report in memory that a child without CLONE_VM shares with us.
struct SharedReport(ptr::NonNull<Report>);

impl SharedReport {
    fn new() -> io::Result<SharedReport> {
        // SAFETY: a fresh anonymous mapping, checked for failure.
        let page = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Report>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let report = ptr::NonNull::new(page.cast::<Report>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let shared = SharedReport(report);
        shared.get().step.store(NOTHING, Ordering::Relaxed);
        Ok(shared)
    }

    fn get(&self) -> &Report {
        // SAFETY: mapped for as long as this lives; zero bytes are a valid
        // Report.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedReport {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which no reference is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Report>()) };
    }
}

/// The number of the resource called as in `ulimit`'s and `setrlimit`'s manual,
/// without the prefix: `nofile`, `as`, `core`.
pub(crate) fn resource_number(name: &str) -> Option<u32> {
    let number = match name {
        "as" => libc::RLIMIT_AS,
        "core" => libc::RLIMIT_CORE,
        "cpu" => libc::RLIMIT_CPU,
        "data" => libc::RLIMIT_DATA,
        "fsize" => libc::RLIMIT_FSIZE,
        "locks" => libc::RLIMIT_LOCKS,
        "memlock" => libc::RLIMIT_MEMLOCK,
        "msgqueue" => libc::RLIMIT_MSGQUEUE,
        "nice" => libc::RLIMIT_NICE,
        "nofile" => libc::RLIMIT_NOFILE,
        "nproc" => libc::RLIMIT_NPROC,
        "rss" => libc::RLIMIT_RSS,
        "rtprio" => libc::RLIMIT_RTPRIO,
        "rttime" => libc::RLIMIT_RTTIME,
        "sigpending" => libc::RLIMIT_SIGPENDING,
        "stack" => libc::RLIMIT_STACK,
        _ => return None,
    };
    // Signed with musl, unsigned with glibc.
    #[allow(clippy::unnecessary_cast, reason = "not with musl")]
    Some(number as u32)
}

/// The calling process's nice value.
pub(crate) fn system_niceness() -> i32 {
    // SAFETY: a system call on numbers. The raw call answers 20 - nice, so that
    // no answer looks like an error.
    let raw = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    20 - i32::try_from(raw).unwrap_or(20)
}
