//! The child between clone and exec: system calls and stores to its own stack, to the
//! report and to the digits of a [`PidVariable`](super::PidVariable), nothing else.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering;

use super::report::{CGROUP, ChildReport, EXEC};
use super::{Action, FdSource, MAX_PARKED, Plan};

/// Everything that the child gets.
pub(super) struct Context<'a> {
    pub(super) plan: &'a Plan,
    pub(super) argv: &'a [*const c_char],
    pub(super) envp: &'a [*const c_char],
    pub(super) report: &'a ChildReport,
    /// The file `cgroup.procs` of a cgroup that the child has to join by itself, or -1.
    pub(super) joins: c_int,
}

/// The child's life between clone and exec.
pub(super) extern "C" fn child(context: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to a Context that outlives us.
    let context = unsafe { &*context.cast::<Context<'_>>() };
    // Before the first step: one of them may put another descriptor in the place of this.
    if context.joins >= 0 && !write_whole(context.joins, b"0") {
        return fail(context.report, CGROUP);
    }
    let mut slots = [-1; MAX_PARKED];
    for (index, action) in (0..).zip(&context.plan.actions) {
        if !take_step(action, &mut slots) {
            return fail(context.report, index);
        }
    }
    for signed in &context.plan.signed {
        // SAFETY: a system call without arguments. Raw, since an old C library
        // remembers the number, and its memory is that of our parent.
        let number = unsafe { libc::syscall(libc::SYS_getpid) };
        signed.write_pid(number as u32);
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
            // One path only: nothing is searched, and this is the reason.
            libc::ENOTDIR if context.plan.programs.len() == 1 => errno = libc::ENOTDIR,
            // Try the next directory of PATH, as execvp does.
            libc::ENOENT | libc::ENOTDIR => {}
            // Perhaps in another directory; but if not, this is what to report.
            libc::EACCES => errno = libc::EACCES,
            // Of this directory alone, as where its file server is away.
            other @ (libc::ELOOP
            | libc::ENAMETOOLONG
            | libc::ENODEV
            | libc::ESTALE
            | libc::ETIMEDOUT) => {
                if errno == libc::ENOENT {
                    errno = other;
                }
            }
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

fn fail(report: &ChildReport, index: i32) -> c_int {
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
/// signals all threads of "the process", which it finds in memory that we share.
fn take_step(action: &Action, slots: &mut [c_int; MAX_PARKED]) -> bool {
    // SAFETY: plain system calls on values prepared by the parent; every
    // pointer is to memory of the plan, which outlives us.
    unsafe {
        match action {
            Action::Setsid => libc::setsid() >= 0,
            // 0: fail if the terminal controls another session already.
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
            Action::OomScoreAdj(number) => {
                let flags = libc::O_WRONLY | libc::O_CLOEXEC;
                let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), flags);
                if file < 0 || !write_whole(file, number.as_bytes()) {
                    return false;
                }
                libc::close(file);
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
            Action::SchedPolicy { policy, priority } => {
                // `struct sched_param` is this one number.
                libc::syscall(
                    libc::SYS_sched_setscheduler,
                    0,
                    *policy,
                    ptr::from_ref(priority),
                ) == 0
            }
            Action::IoPriority(number) => {
                libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, *number) == 0
            }
            Action::CpuAffinity(processors) => set_affinity(processors),
            Action::Chroot(directory) => {
                libc::chroot(directory.as_ptr()) == 0 && libc::chdir(c"/".as_ptr()) == 0
            }
            Action::Setgroups(groups) => {
                libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0
            }
            Action::Setgid(gid) => libc::syscall(libc::SYS_setresgid, *gid, *gid, *gid) == 0,
            Action::Setuid(uid) => libc::syscall(libc::SYS_setresuid, *uid, *uid, *uid) == 0,
            Action::NewKeyring => {
                // No name: one that nobody else can join.
                let name = ptr::null::<c_char>();
                libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, name) >= 0
            }
            Action::DieWithParent { signal, parent } => {
                if libc::prctl(libc::PR_SET_PDEATHSIG, *signal) != 0 {
                    return false;
                }
                // The parent may have died before the request stood: then the signal will
                // never be sent.
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
                    FdSource::Fd(fd) => *fd,
                    FdSource::Slot(slot) => slots.get(*slot).copied().unwrap_or(-1),
                };
                if from == *to {
                    // dup2 onto itself would leave the close-on-exec flag.
                    libc::fcntl(from, libc::F_SETFD, 0) == 0
                } else {
                    libc::dup2(from, *to) >= 0
                }
            }
            Action::ResetSignals {
                ignored,
                default,
                blocked,
            } => reset_signals(ignored, default) && set_mask(blocked),
            Action::NoNewPrivs => libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0,
        }
    }
}

const IOPRIO_WHO_PROCESS: c_int = 1;
const KEYCTL_JOIN_SESSION_KEYRING: c_int = 1;

/// Writes these few bytes in one piece, as files of the kernel take them.
fn write_whole(file: c_int, bytes: &[u8]) -> bool {
    // SAFETY: the pointer and the length are those of the slice.
    let written = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(written) == Ok(bytes.len())
}

/// Room for 8192 processors, the most of which a kernel of today can be built for.
const MOST_WORDS: usize = super::MOST_PROCESSORS / 64;

/// Has this process run on these processors, and fails with `EINVAL` if one of them is not
/// there or not in the cpuset: the kernel takes the others and says nothing.
fn set_affinity(processors: &[u64]) -> bool {
    let mut have = [0u64; MOST_WORDS];
    // SAFETY: the pointers and lengths are those of the two slices; the call takes 0 for
    // the caller.
    unsafe {
        let length = size_of_val(processors);
        if libc::syscall(libc::SYS_sched_setaffinity, 0, length, processors.as_ptr()) != 0 {
            return false;
        }
        let length = size_of_val(&have);
        if libc::syscall(libc::SYS_sched_getaffinity, 0, length, have.as_mut_ptr()) < 0 {
            return false;
        }
        let all = have.iter().zip(processors);
        let has_all = all.fold(true, |all, (have, wanted)| all && have & wanted == *wanted);
        if !has_all {
            *libc::__errno_location() = libc::EINVAL;
        }
        has_all
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

/// The slow way for [`close_from`]: reads the child's own descriptor table. With raw
/// getdents, since readdir allocates.
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

/// The number that a directory entry consists of; `None` for dots.
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
/// Python both ignore SIGPIPE) but that a fresh program counts on. Signals that the
/// user had ignored on purpose stay so: SIGHUP under nohup, SIGINT and SIGQUIT
/// of a shell's background job. Which of these three was the user's wish, the host cannot
/// tell any more; a caller that can says so.
const EXPECTED: [c_int; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];

fn reset_signals(to_ignore: &[c_int], to_reset: &[c_int]) -> bool {
    // SAFETY: zeroed is a valid sigaction (the default handler, no flags), and
    // the pointers are to locals. The C library refuses the two numbers that it
    // keeps for itself, which only its own threads can send.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        let mut ignore = default;
        ignore.sa_sigaction = libc::SIG_IGN;
        let mut current: libc::sigaction = MaybeUninit::zeroed().assume_init();
        for signal in 1..=libc::SIGRTMAX() {
            if libc::sigaction(signal, ptr::null(), &raw mut current) != 0 {
                continue;
            }
            let ignored = current.sa_sigaction == libc::SIG_IGN;
            let caught = !ignored && current.sa_sigaction != libc::SIG_DFL;
            let reset = to_reset.contains(&signal) || EXPECTED.contains(&signal);
            let action = match to_ignore.contains(&signal) {
                true => &raw const ignore,
                false if caught || (ignored && reset) => &raw const default,
                false => continue,
            };
            if libc::sigaction(signal, action, ptr::null_mut()) != 0 {
                return false;
            }
        }
    }
    true
}

/// Sets the calling thread's whole signal mask. Raw, because the C library keeps two
/// signals out of every mask.
pub(super) fn set_mask(mask: &u64) -> bool {
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
