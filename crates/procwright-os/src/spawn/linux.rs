//! Linux: `clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD)` and raw calls.
//!
//! Why not `posix_spawn`: it has no working directory before glibc 2.29, no
//! umask, no limits, no groups, reports an error without its step, and gives no
//! pidfd before glibc 2.39. Why not `fork`: it copies the page tables of the
//! parent, 0.5 ms for each resident 100 MiB or so.
//!
//! # Steps
//!
//! 1. All signals are blocked in the calling thread.
//! 2. `clone` starts the child on a stack of its own, in our memory. The calling
//!    thread is suspended until the child has exited or called exec.
//! 3. The child takes the actions of the plan. One of them resets every handler and
//!    then unblocks the signals.
//! 4. The child calls exec, or writes a [`ChildReport`] and exits.
//! 5. The calling thread wakes up, restores its mask and reads the report.
//!
//! The child may, until step 4, only make system calls and write to its own stack, to
//! the digits of a [`PidVariable`] and to the report. Three things follow:
//! - signals are blocked across the clone: a handler of ours must not run in the child;
//! - the child never unwinds: no operation in it can panic;
//! - a change of credentials happens in a copy of the memory (no `CLONE_VM`):
//!   a process with other credentials that shares our memory could be traced
//!   into it by processes of its new user.
//!
//! # In a cgroup
//!
//! `clone3` with `CLONE_INTO_CGROUP` (Linux 5.7) makes the child there, with a copy of the
//! memory: to give it a stack in ours takes code in assembler, for each architecture.
//! Where that call is not known or not allowed, and in a cgroup of version 1, the child
//! joins by itself, as its first step. It is in the cgroup before it can start anything
//! either way.
#![allow(missing_docs, reason = "documented where it is exported")]
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use super::child::{Context, child, set_mask};
use super::report::{CGROUP, ChildReport, EXEC, NOTHING, SharedReport};
use super::{Cgroup, FailedStep, PidVariable, Plan, Spawned};

/// Stack size: enough for the deepest path through [`child`], debug builds included;
/// the pages that it does not reach are never touched.
const STACK: usize = 64 * 1024;

pub fn spawn(plan: &Plan) -> Result<Spawned, FailedStep> {
    let argv = pointers(&plan.argv, &[]);
    let envp = pointers(&plan.env, &plan.signed);
    let own = ChildReport {
        step: AtomicI32::new(NOTHING),
        errno: AtomicI32::new(0),
    };
    let makes_in = plan
        .cgroup
        .as_ref()
        .and_then(|cgroup| cgroup.directory.as_ref());
    let copies = plan.changes_credentials || makes_in.is_some();
    let shared = match copies {
        true => Some(SharedReport::new().map_err(FailedStep::Clone)?),
        false => None,
    };
    let report = shared.as_ref().map_or(&own, SharedReport::get);
    let mut context = Context {
        plan,
        argv: &argv,
        envp: &envp,
        report,
        joins: -1,
    };
    if let Some(directory) = makes_in {
        match clone_into(&context, directory) {
            Err(error) if is_not_to_be_had(&error) => {}
            Err(error) => return Err(of_the_cgroup(error)),
            Ok(cloned) => return started(cloned, report),
        }
    }
    context.joins = plan.cgroup.as_ref().map_or(-1, Cgroup::procs);
    let memory = if copies { 0 } else { libc::CLONE_VM };
    started(clone(&context, memory).map_err(FailedStep::Clone)?, report)
}

/// A child that has called exec or exited.
struct Cloned {
    pid: c_int,
    pidfd: c_int,
}

fn clone(context: &Context<'_>, memory: c_int) -> io::Result<Cloned> {
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
            ptr::from_ref(context).cast_mut().cast::<c_void>(),
            &raw mut pidfd,
        )
    };
    let error = io::Error::last_os_error();
    drop(blocked);
    match pid < 0 {
        true => Err(error),
        false => Ok(Cloned { pid, pidfd }),
    }
}

/// `struct clone_args` up to the member `cgroup`, of Linux 5.7.
#[repr(C)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Makes the child in the cgroup of this directory, with a copy of our memory.
fn clone_into(context: &Context<'_>, directory: &OwnedFd) -> io::Result<Cloned> {
    let mut pidfd: c_int = -1;
    let flags = (libc::CLONE_VFORK | libc::CLONE_PIDFD).cast_unsigned();
    let arguments = CloneArgs {
        flags: u64::from(flags) | CLONE_INTO_CGROUP,
        pidfd: (&raw mut pidfd).expose_provenance() as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: directory.as_raw_fd() as u64,
    };

    let blocked = BlockedSignals::all();
    // SAFETY: the kernel reads so many bytes of `arguments` and writes to `pidfd`. The call
    // comes back twice, as fork does, each time with memory of its own.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            size_of::<CloneArgs>(),
        )
    };
    if pid == 0 {
        child(ptr::from_ref(context).cast_mut().cast::<c_void>());
        // SAFETY: _exit runs no handlers. Never got here: the child has called it.
        unsafe { libc::_exit(127) }
    }
    let error = io::Error::last_os_error();
    drop(blocked);
    match c_int::try_from(pid) {
        Ok(pid) if pid > 0 => Ok(Cloned { pid, pidfd }),
        _ => Err(error),
    }
}

/// True if the error is that of a kernel, or a sandbox, that does not know the call or one
/// of its flags, or does not allow it. No other error is a reason to have the child join by
/// itself: that a cgroup has as many processes as it may holds up a clone, and no join.
fn is_not_to_be_had(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::E2BIG | libc::EINVAL | libc::EPERM)
    )
}

/// The refusal of a clone into a cgroup.
fn of_the_cgroup(error: io::Error) -> FailedStep {
    match error.raw_os_error() {
        Some(
            libc::EACCES
            | libc::EBADF
            | libc::EBUSY
            | libc::ENODEV
            | libc::ENOENT
            | libc::EOPNOTSUPP,
        ) => FailedStep::Cgroup(error),
        _ => FailedStep::Clone(error),
    }
}

fn started(Cloned { pid, pidfd }: Cloned, report: &ChildReport) -> Result<Spawned, FailedStep> {
    if pidfd < 0 {
        // A kernel, or a sandbox that plays one, that does not know CLONE_PIDFD.
        // SAFETY: the child is ours and not reaped, so the number is its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        reap_failed(pid);
        return Err(FailedStep::Clone(crate::unsupported(
            "a process descriptor",
        )));
    }
    // SAFETY: the clone has succeeded, so the kernel has put a new descriptor
    // here that no other code knows.
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
        EXEC => FailedStep::Exec(errno()),
        CGROUP => FailedStep::Cgroup(errno()),
        action => FailedStep::Action(usize::try_from(action).unwrap_or(0), errno()),
    };
    reap_failed(pid);
    Err(failed)
}

/// The peak of memory that this process has occupied, in bytes.
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
/// about to, so this wait is short. The pid cannot be reused before.
fn reap_failed(pid: i32) {
    // SAFETY: waitpid with no status pointer touches no memory of ours.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

fn pointers(strings: &[CString], signed: &[PidVariable]) -> Vec<*const c_char> {
    let strings = strings.iter().map(|s| s.as_ptr());
    let mut all: Vec<_> = strings
        .chain(signed.iter().map(PidVariable::as_ptr))
        .collect();
    all.push(ptr::null());
    all
}

/// A guard under which all signals of this thread are blocked, the C library's own
/// too.
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

// Names are those of `ulimit`'s and `setrlimit`'s manual, without the prefix.
pub fn resource_number(name: &str) -> Option<u32> {
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

// The raw call answers 20 - nice, so that no answer looks like an error.
pub fn system_niceness() -> i32 {
    // SAFETY: a system call on numbers. The raw call answers 20 - nice, so that
    // no answer looks like an error.
    let raw = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    20 - i32::try_from(raw).unwrap_or(20)
}
