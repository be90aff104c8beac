//! Signals by number, and sending them by pid.
//!
//! [`kill`] and [`kill_group`] are the system's calls with nothing added. Callers have
//! to know that the number still names the process meant; `ProcId` in the crate
//! `procwright-process` is how that is known.

use std::io;

pub use libc::{
    SIGABRT, SIGALRM, SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGIO, SIGKILL,
    SIGPIPE, SIGPROF, SIGQUIT, SIGSEGV, SIGSTOP, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGTTIN,
    SIGTTOU, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

pub(crate) mod mask;
mod sigpipe;

pub use imp::{EXTRA, realtime};
pub use sigpipe::{NoSigpipe, without_sigpipe};

/// Sends `signal` to the process called `pid` right now; 0 only checks.
///
/// # Errors
#[doc(alias = "os.kill")]
/// `ESRCH` if there is none, `EPERM` if it is someone else's.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // 0 and negative numbers mean groups, or all processes: a slip would be a
    // catastrophe and not an error.
    assert!(pid > 0, "kill of pid {pid}");
    // SAFETY: no memory is handed over.
    result(unsafe { libc::kill(pid, signal) })
}

/// Sends `signal` to every process of the group `pgid`.
///
/// The system does so in one step: a fork that is under way in a member either
/// is over and its child gets the signal too, or starts again after it.
///
/// # Errors
#[doc(alias = "killpg")]
/// `ESRCH` if the group is empty, `EPERM` if not one member could be signalled.
pub fn kill_group(pgid: i32, signal: i32) -> io::Result<()> {
    assert!(pgid > 1, "kill of group {pgid}");
    // SAFETY: no memory is handed over.
    result(unsafe { libc::kill(-pgid, signal) })
}

/// True if the group `pgid` has members, zombies included.
#[doc(alias = "killpg")]
pub fn group_exists(pgid: i32) -> bool {
    match kill_group(pgid, 0) {
        Ok(()) => true,
        Err(error) => error.raw_os_error() != Some(libc::ESRCH),
    }
}

/// True if this process ignores `signal`. False if that cannot be asked.
#[doc(alias = "sigaction")]
#[doc(alias = "SIG_IGN")]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: zeroed is a valid value of this plain C structure; without a new
    // action the call only writes the old one to it.
    let (result, action) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let result = libc::sigaction(signal, std::ptr::null(), &raw mut action);
        (result, action)
    };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

fn result(code: i32) -> io::Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
