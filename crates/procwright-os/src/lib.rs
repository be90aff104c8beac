//! The ground of [procwright](https://docs.rs/procwright): every system call, one
//! folder a concern, one file a platform; and what needs nothing but them, closable
//! [handles](handle) and [deadlines](time).
//!
//! Nothing above this crate names an operating system. Each folder's `mod.rs`
//! states the contract; what a platform cannot offer returns [`unsupported`].
//!
//! The crate exists so that the compiler holds the border: all `unsafe` code that has
//! to do with processes is here. It promises no stable interface; what is meant for
//! programs is in the crates above it.
//!
//! | Subject | Modules |
//! |---|---|
//! | processes | [`spawn`] (clone, exec), [`pidfd`], [`wait`](mod@wait) (waitid), [`signal`], [`proc`] (`/proc`), [`job_control`], [`oom`] (counters of cgroups), [`subreaper`], [`watchdog`] |
//! | descriptors | [`fd`], [`pipe`], [`pty`], [`file`](mod@file), [`private_dir`] (openat, inotify), [`message`] (SCM_RIGHTS), [`unix_socket`], [`write_nowait`], [`fd_table`] (tables of single threads) |
//! | waiting for descriptors | [`poll`], [`ready`] (epoll, kqueue), [`wake`] (eventfd) |
//! | memory | [`memory`] (mmap, madvise), [`shared_memory`] (shared memory), `memfd` (seals), `futex`, [`robust`] (robust futexes), [`fence`] |
//! | threads and forks | [`thread`], [`sync`] (Mutex, Condvar), [`fork`] (fork-safe statics and descriptors) |
//! | built on these | [`handle`] (a descriptor that any thread may close), [`time`] (deadlines) |
//! | helpers | `seccomp` (whether a call may be tried), `Invalid`, `unsupported`, `fault` (faults for tests) |

// Processes.
pub mod job_control;
pub mod oom;
pub mod pidfd;
pub mod proc;
pub mod signal;
pub mod spawn;
pub mod subreaper;
pub mod wait;
pub mod watchdog;

// Descriptors.
pub mod fd;
pub mod fd_table;
pub mod file;
pub mod message;
pub mod pipe;
pub mod private_dir;
pub mod pty;
#[cfg(not(procwright_loom))]
pub mod unix_socket;
pub mod write_nowait;

// Waiting for descriptors.
pub mod poll;
pub mod ready;
pub mod wake;

// Memory.
pub mod fence;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod futex;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod memfd;
pub mod memory;
pub mod robust;
#[cfg(not(procwright_loom))]
pub mod shared_memory;

// Threads and forks.
pub mod fork;
pub mod sync;
pub mod thread;

// Built on these.
pub mod handle;
pub mod time;

// Helpers.
#[cfg(procwright_fault)]
pub mod fault;
mod invalid;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod seccomp;

pub use invalid::Invalid;

/// The error of what this platform cannot do.
pub fn unsupported(what: &str) -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        format!("{what} is not available on this platform"),
    )
}
