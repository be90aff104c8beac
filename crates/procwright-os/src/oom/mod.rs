//! Processes that the kernel has killed for want of memory, as their cgroup counts them.
//!
//! The counter of a cgroup goes up when one of its processes is chosen, before that gets its
//! SIGKILL, and whichever limit was met: that of the cgroup, of one above it, or all memory
//! of the machine. So whoever reads it before a program starts and after its end knows
//! whether the kernel has killed there meanwhile; whom, no counter tells.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

/// The count of a cgroup, at one time.
#[doc(alias = "memory.events")]
#[doc(alias = "memory.oom_control")]
#[doc(alias = "oom_kill")]
pub use imp::OomCount;

/// Processes of a cgroup that the kernel has killed for want of memory in some time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OomKills {
    /// The cgroup, as `/proc/self/cgroup` has it, or its directory.
    pub cgroup: String,
    /// The number of processes, never 0.
    pub processes: u64,
}
