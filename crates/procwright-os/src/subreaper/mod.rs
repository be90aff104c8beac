//! Becoming the parent of orphaned descendants (a sub-reaper), and reaping them.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

/// Makes this process the parent of every descendant whose own parent ends.
///
/// # Errors
/// `Unsupported` elsewhere than on Linux.
#[doc(alias = "PR_SET_CHILD_SUBREAPER")]
#[doc(alias = "prctl")]
pub use imp::become_subreaper;
/// Pids of all children of this process, zombies too; none if the system does not tell.
#[doc(alias = "/proc/self/task/*/children")]
pub use imp::children;
/// Reaps every child that has ended but the one called `except`, and counts them.
/// Never waits.
#[doc(alias = "waitid")]
pub use imp::reap_ended;
