//! The status that a process ended with, and the one system call that reaps.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::time::Duration;

/// Waits until the child has ended, without reaping it.
///
/// # Errors
/// `ECHILD` when it is not ours, any more or at all.
#[doc(alias = "waitid")]
#[doc(alias = "WNOWAIT")]
pub use imp::await_child;
/// Waits until the process has been reaped, or the deadline comes.
///
/// # Errors
/// Those of `poll(2)`; `Unsupported` where there are no process descriptors.
#[doc(alias = "POLLHUP")]
pub use imp::await_reap;
/// Decodes a status in the format of `wait(2)`.
#[doc(alias = "WIFEXITED")]
#[doc(alias = "WEXITSTATUS")]
#[doc(alias = "WTERMSIG")]
#[doc(alias = "waitstatus_to_exitcode")]
pub use imp::decode_status;
/// The status of a process that has ended, once it is reaped, if that is a matter of
/// milliseconds; `None` where the kernel does not remember it.
#[doc(alias = "PIDFD_GET_INFO")]
pub use imp::exit_info;
/// True if the process is a child of ours that has ended and is not reaped, as a wait by
/// its descriptor tells; false where that is refused.
#[doc(alias = "P_PIDFD")]
pub use imp::is_own_zombie;
/// The status of a child that has ended, without reaping it; `None` while it runs. Asked
/// by its descriptor, and by its number where that is refused.
///
/// # Errors
/// `ECHILD` when it is not ours to reap any more.
#[doc(alias = "waitid")]
#[doc(alias = "WNOWAIT")]
#[doc(alias = "P_PIDFD")]
pub use imp::peek;
/// The status of the child called `pid` that has ended, without reaping it; `None`
/// while it runs.
///
/// # Errors
/// `ECHILD` when it is not ours to reap any more.
#[doc(alias = "waitid")]
#[doc(alias = "WNOWAIT")]
pub use imp::peek_child;
/// The status of a child that has ended and the resources that it has used, without
/// reaping it; `None` while it runs. Asked as [`peek`] does.
///
/// # Errors
/// `ECHILD` when it is not ours to reap any more.
#[doc(alias = "waitid")]
#[doc(alias = "WNOWAIT")]
#[doc(alias = "P_PIDFD")]
pub use imp::peek_usage;
/// Reaps a child that has ended: its status and the resources that it has used. `None`
/// while it runs. Done by its descriptor, and by its number where that is refused.
///
/// # Errors
/// `ECHILD` when it is not ours to reap any more.
#[doc(alias = "waitid")]
#[doc(alias = "P_PIDFD")]
#[doc(alias = "wait4")]
pub use imp::reap;
/// The status of a process that another has reaped, where the kernel remembers it.
#[doc(alias = "PIDFD_GET_INFO")]
pub use imp::status_of_reaped;

/// A status as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawExit {
    /// Exit code.
    Code(i32),
    /// End by a signal.
    Signal {
        /// Number of the signal.
        number: i32,
        /// True if a core file was written.
        core: bool,
    },
}

/// The resources that one process and the children that it waited for have used.
#[doc(alias = "rusage")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in the program's own code.
    pub user: Duration,
    /// Time in the kernel.
    pub system: Duration,
    /// Peak resident memory in bytes.
    pub max_rss: u64,
}
