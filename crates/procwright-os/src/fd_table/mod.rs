//! A descriptor table of its own for a single thread.
//!
//! The limit on descriptors (`RLIMIT_NOFILE`, "EMFILE") limits their numbers in one
//! table, so a thread with a table of its own can open descriptors where its process
//! has none left.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

/// Gives the calling thread an empty descriptor table of its own.
///
/// Meant for threads that own no descriptor and are never given one that another
/// thread opened: dropped here, it would close a number that means something else.
///
/// # Errors
/// `Unsupported` elsewhere than on Linux; `EINVAL` or `ENOSYS` before Linux 5.9.
#[doc(alias = "close_range")]
#[doc(alias = "CLOSE_RANGE_UNSHARE")]
#[doc(alias = "unshare")]
pub use imp::unshare_empty;
/// Wakes a thread that has a [`ThreadWake`] and has not ended.
///
/// The signal is lost where the host sets its disposition to "ignored" at that very
/// moment: a caller that waits for an answer wakes again.
///
/// # Errors
/// Those of `tgkill(2)`, in a sandbox that forbids it.
#[doc(alias = "tgkill")]
pub use imp::wake_thread;
pub use imp::{ThreadWake, Tid};
