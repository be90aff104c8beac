//! How a process ended, and the one system call that reaps.
//!
//! Contract of the platform files:
//! - `reap(pidfd)`: the raw status and the resource usage of a child that has
//!   ended, which is gone afterwards; none while it runs. `ECHILD` when it is
//!   not ours to reap any more.
//! - `peek(pidfd)`, `peek_child(pid)`: the same without the usage, and without
//!   reaping.
//! - `await_child(pid)`: returns when the child has ended, without reaping it;
//!   `ECHILD` when it is not ours, any more or at all.
//! - `remembered(pidfd)`: the wait status of a process that somebody else has
//!   reaped, where the kernel remembers it.
//! - `await_reap(pidfd, deadline)`: returns when the process has been reaped,
//!   or at the deadline.
//! - `exit_info(pidfd)`: waits until a process that has ended is reaped, if that
//!   is a matter of milliseconds, and returns what is remembered.
//! - `of_status(status)`: what a status in the format of `wait(2)` means.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::time::Duration;

pub(crate) use imp::{
    await_child, await_reap, exit_info, of_status, peek, peek_child, reap, remembered,
};

/// A status as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawExit {
    Code(i32),
    Signal { number: i32, core: bool },
}

/// What one process and the children that it waited for have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Peak resident memory in bytes.
    pub(crate) max_rss: u64,
}
