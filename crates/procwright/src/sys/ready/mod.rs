//! Many descriptors and processes behind one descriptor.
//!
//! Contract of every platform file, about `ReadySet`:
//!
//! - `new()`: one descriptor, close-on-exec.
//! - `add(fd, key, on)`: from now on the set is ready while `fd` is, at a cost
//!   that does not grow with the set. `AlreadyExists` if that very descriptor is
//!   in it. The caller removes it before it closes it.
//! - `remove(fd)`.
//! - `add_process(pid, key)`: for systems that watch processes by number; the
//!   set is ready once the process has ended, be that before this call.
//!   `NotFound` if there is no process of that number, `Unsupported` where
//!   descriptors of processes do this. `remove_process(pid)`.
//! - `wait(&mut keys, deadline)`: sleeps until the set is ready or the deadline
//!   has come, and appends the keys of what is ready: at most [`BATCH`], those
//!   left over keep the set ready. Looks once if the deadline has come before.
//!   A signal handler does not end it.
//! - `as_fd()`: readable while the set is ready.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "epoll.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

pub(crate) use imp::ReadySet;

/// What makes a descriptor ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// It can be read from, or was hung up.
    Read,
    /// It was hung up, no less.
    HangUp,
}

/// How many keys one look brings at most: so that a mass exit costs a system
/// call per batch and not per process, from a buffer that fits a stack.
pub(crate) const BATCH: usize = 256;
