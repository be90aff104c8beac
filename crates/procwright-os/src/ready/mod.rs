//! Many descriptors and processes behind one descriptor: epoll or kqueue.
//!
//! Contract of every platform file, about `ReadySet`:
//!
//! - `new()`: one descriptor, close-on-exec. A fork may only drop it.
//! - `add(fd, key, interest)`: from now on the set is ready while `fd` is, at a cost
//!   that does not grow with the set. `AlreadyExists` if that very descriptor is
//!   in it. The caller removes it before it closes it.
//! - `remove(fd)`.
//! - `add_process(pid, birth, key, has_ended)`: for systems that watch processes
//!   by number; `Unsupported` where descriptors of processes do this. The process
//!   is the one of that number that was started at `birth` (in whatever unit; 0
//!   if that is not known), and `has_ended` tells whether that very one has
//!   ended, also if its number is another's by now. The set is ready once it has,
//!   be that before this call, and tells so once for each key; a process may be
//!   in it more than once.
//! - `remove_process(pid, key)`: takes it out, or forgets about one that was told
//!   to have ended, and returns its status in the format of `wait(2)` if the
//!   system told that too.
//! - `wait(&mut keys, deadline)`: sleeps until the set is ready or the deadline
//!   has come, and appends the keys of what is ready: of at most [`BATCH`]
//!   descriptors and processes, those left over keep the set ready. One check is made
//!   if the deadline has come before. A signal handler does not end the wait.
//! - `as_fd()`: readable while the set is ready. It may be readable for nothing;
//!   a `wait` that has come to its deadline brings it to rest.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "epoll.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "kevent.rs"]
mod imp;
// The logic makes no system call, so that it is tested where there is no kqueue.
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod kqueue;
#[cfg(test)]
mod kqueue_tests;

pub use imp::ReadySet;

/// The readiness that a descriptor is watched for.
#[doc(alias = "EPOLLIN")]
#[doc(alias = "EPOLLOUT")]
#[doc(alias = "EVFILT_READ")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Readable, or hung up.
    Read,
    /// Writable, or without a reader.
    Write,
    /// Hung up, no less.
    HangUp,
}

/// The most events that one call brings: so that a mass exit costs a system call per
/// batch and not per process, from a buffer that fits a stack.
pub const BATCH: usize = 256;
