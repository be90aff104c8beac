//! Probes whether a system call may be made under a seccomp filter.
//!
//! A filter may answer a call that it does not know by killing the process. So where
//! there is a filter, a forked child makes the call first. Where there is none, which
//! is nearly always, this costs one `prctl`.

use std::io;

use libc::{c_int, c_void};
use rustix::fs::{AtFlags, CWD, readlink, statat};
use rustix::io::Errno;

use crate::signal::mask::BlockedMask;

/// True if this process is under a seccomp filter.
pub(crate) fn is_filtered() -> bool {
    // SAFETY: a plain call without pointers. It answers 2 under a filter, and
    // EINVAL where the kernel knows no filters.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) == 2 }
}

/// Whether a child survives `attempt`; none if no child can be had for it now, or may not
/// (see [`next_child_begins_namespace`]). A call about which nothing is known is not made.
///
/// # Safety
/// `attempt` makes raw system calls only, whose pointers are null or to memory of
/// its own.
pub(crate) unsafe fn survives(attempt: impl FnOnce()) -> Option<bool> {
    let attempted = || {
        attempt();
        true
    };
    // SAFETY: the caller's word.
    unsafe { succeeds(attempted) }
}

/// Whether `attempt` says so in a child that survives it; none as in [`survives`]. A filter
/// may answer with any error, with one that means something else to the caller as well, so
/// that a call is tried where its success is certain without a filter.
///
/// # Safety
/// As [`survives`].
pub(crate) unsafe fn succeeds(attempt: impl FnOnce() -> bool) -> Option<bool> {
    if next_child_begins_namespace() {
        return None;
    }
    // The child has a copy of the memory, unlike programs that are started: a
    // filter's kill dumps core, and before Linux 5.16 a dump ended every process that
    // shared the memory. It has no exit signal: the host's handlers and waits see
    // nothing of it. The call is raw, so that no fork handler of the host runs.
    //
    // SAFETY: the child makes only raw system calls until it exits, as the caller
    // has promised of `attempt`, on its copy of this stack; the C library's view of
    // who it is is not asked for.
    unsafe {
        let blocked = BlockedMask::all();
        let child = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
        if child == 0 {
            attempt_and_exit(attempt);
        }
        drop(blocked);
        (child > 0).then(|| exited_with_zero(child as c_int))
    }
}

/// True if the next child of this thread will be process 1 of a pid namespace that the
/// host has made for a program of its own (`unshare(CLONE_NEWPID)`). The namespace ends
/// with its process 1, and no later child could be made. So none of ours may take the
/// place.
///
/// False where the system does not tell: without `/proc`, and before Linux 4.12, which
/// has no pidfds to be tried.
pub(crate) fn next_child_begins_namespace() -> bool {
    // The link is there and leads nowhere while the namespace has no process 1.
    let link = c"/proc/thread-self/ns/pid_for_children";
    matches!(readlink(link, Vec::new()), Err(Errno::NOENT))
        && statat(CWD, link, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Runs `work` in a child that shares our memory and has ended when this returns. For
/// what threads have of their own, where a fork would copy all memory.
///
/// # Errors
/// Those of `clone(2)`; `EBUSY` if the child would begin a pid namespace, see
/// [`next_child_begins_namespace`].
///
/// # Safety
/// `work` makes raw system calls and writes to what `context` points to, where
/// nothing else writes, and does nothing else. It neither panics nor is killed by a
/// filter: see [`survives`].
pub(crate) unsafe fn run_sharing_memory(
    work: extern "C" fn(*mut c_void) -> c_int,
    context: *mut c_void,
) -> io::Result<()> {
    if next_child_begins_namespace() {
        return Err(Errno::BUSY.into());
    }
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    // No exit signal, so that the host's handlers and waits see nothing of the child.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: this thread is suspended until the child has ended or let go of the
    // memory, so the stack, which grows down from its end, and the context outlive
    // its use. No handler of ours runs in it. The rest is the caller's word.
    let child = unsafe {
        let blocked = BlockedMask::all();
        let top = stack.as_mut_ptr().add(stack.capacity());
        let child = libc::clone(work, top.cast(), flags, context);
        let error = io::Error::last_os_error();
        drop(blocked);
        match child > 0 {
            true => child,
            false => return Err(error),
        }
    };
    exited_with_zero(child);
    Ok(())
}

/// Stack size: enough for a few calls, debug builds included.
const STACK: usize = 16 * 1024;

/// The child's part of [`succeeds`]. A signal that the filter forces on it ends it,
/// since it is blocked, and runs no handler of the host.
///
/// # Safety
/// Only in a child that shares no memory.
unsafe fn attempt_and_exit(attempt: impl FnOnce() -> bool) -> ! {
    // No core file, and no line about one in the log.
    //
    // SAFETY: a raw call without pointers.
    unsafe { libc::syscall(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    let code = c_int::from(!attempt());
    loop {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

fn exited_with_zero(child: c_int) -> bool {
    let mut status = 0;
    loop {
        // SAFETY: the pointer is to a status of ours. __WCLONE: a wait finds children
        // without an exit signal only if it asks for them.
        let pid = unsafe { libc::waitpid(child, &mut status, libc::__WCLONE) };
        if pid == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}
