//! Whether a system call may be made at all.
//!
//! A seccomp filter may answer a call that it does not know with the end of the
//! process. So where there is a filter, a forked child tries first. Where there
//! is none, which is nearly always, this costs one `prctl`.

use std::io;

use libc::{c_int, c_void};

/// Whether this process is under a filter.
pub(crate) fn is_filtered() -> bool {
    // SAFETY: a plain call without pointers. It answers 2 under a filter, and
    // EINVAL where the kernel knows no filters.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) == 2 }
}

/// Whether a child survives `attempt`. One that cannot be made or asked counts as
/// not surviving: what is not known is not tried.
///
/// # Safety
/// `attempt` makes raw system calls only, whose pointers are null or to memory of
/// its own.
pub(crate) unsafe fn survives(attempt: impl FnOnce()) -> bool {
    // A copy of the memory, unlike for programs that are started: a filter's
    // kill dumps core, and before Linux 5.16 a dump ended everybody who shared
    // the memory. No exit signal: the host's handlers and waits see nothing of
    // it. The raw call, so that no handler of the host's for forks runs.
    //
    // SAFETY: the child makes only raw system calls until it exits, as the caller
    // has promised of `attempt`, on its copy of this stack; the C library's view of
    // who it is is not asked for.
    unsafe {
        let blocked = Blocked::all();
        let child = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
        if child == 0 {
            run(attempt);
        }
        drop(blocked);
        child > 0 && ended_well(child as c_int)
    }
}

/// Runs `work` in a child that shares our memory, and has ended when this returns:
/// for what threads have of their own and forks would need a copy of all for.
///
/// # Errors
/// When no child can be had.
///
/// # Safety
/// `work` makes raw system calls and writes to what `context` points to, where
/// nobody else writes, and nothing else. It neither panics nor is killed by a
/// filter: see [`survives`].
pub(crate) unsafe fn in_our_memory(
    work: extern "C" fn(*mut c_void) -> c_int,
    context: *mut c_void,
) -> io::Result<()> {
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    // No exit signal, as above.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: this thread is suspended until the child has ended or let go of the
    // memory, so the stack, which grows down from its end, and the context outlive
    // its use. No handler of ours runs in it. The rest is the caller's word.
    let child = unsafe {
        let blocked = Blocked::all();
        let top = stack.as_mut_ptr().add(stack.capacity());
        let child = libc::clone(work, top.cast(), flags, context);
        let error = io::Error::last_os_error();
        drop(blocked);
        match child > 0 {
            true => child,
            false => return Err(error),
        }
    };
    ended_well(child);
    Ok(())
}

/// Enough for a few calls, debug builds included.
const STACK: usize = 16 * 1024;

/// In the child. A signal that the filter forces on it ends it, since it is
/// blocked, and not a handler that the host may have.
///
/// # Safety
/// Only in a child that shares no memory.
unsafe fn run(attempt: impl FnOnce()) -> ! {
    // No core file, and no word in the log of one.
    //
    // SAFETY: a raw call without pointers.
    unsafe { libc::syscall(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    attempt();
    loop {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    }
}

fn ended_well(child: c_int) -> bool {
    let mut status = 0;
    loop {
        // SAFETY: the pointer is to a status of ours. __WCLONE: children without
        // an exit signal are waited for by nobody who does not say so.
        let pid = unsafe { libc::waitpid(child, &mut status, libc::__WCLONE) };
        if pid == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}

/// All signals blocked on this thread, until dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Blocked {
        // SAFETY: sigfillset initialises `all`, pthread_sigmask writes `before`;
        // both are ours, and zeroed is a valid value.
        unsafe {
            let mut all = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Blocked(before)
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is one that the system gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
