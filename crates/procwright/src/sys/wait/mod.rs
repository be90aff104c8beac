//! How a process ended, and the one system call that reaps.
//!
//! Contract of the platform files:
//! - `reap(pidfd)`: the raw status and the resource usage of a child that has
//!   ended, which is gone afterwards; none while it runs. `ECHILD` when it is
//!   not ours to reap any more.
//! - `exit_info(pidfd)`: the wait status of a process that somebody else has
//!   reaped, where the kernel remembers it.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::time::Duration;

pub(crate) use imp::{exit_info, reap};

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
