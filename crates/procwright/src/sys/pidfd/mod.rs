//! Process descriptors: a name for a process that is never given to another.
//!
//! Contract of every platform file:
//!
//! - `open(pid)`: a descriptor of the process called `pid` at this moment,
//!   close-on-exec. [`Refused::Never`] if this process cannot have any (an old
//!   kernel, a seccomp filter), which is remembered; [`Refused::Now`] if it
//!   could not have this one (no descriptor is free), which is not;
//!   [`Refused::Gone`] if there is no such process.
//! - `send(pidfd, signal)`, `send_group(pidfd, signal)`: the latter to the
//!   process group which that process leads or led.
//! - `has_exited(pidfd)`: whether all its threads have ended. A zombie has.
//! - `inode(pidfd)`: a number that no other process of this boot has or will
//!   have, where the system gives one.
//! - `EndSet`: many of them behind one descriptor, which is readable while any
//!   of them has exited. `add(pidfd, key)`, `remove(pidfd)`, `ended(&mut Vec)`
//!   (appends the keys of those that have, does not wait), `as_fd()`.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

pub(crate) use imp::{EndSet, has_exited, inode, open, send, send_group};

/// Why there is no descriptor of a process.
#[derive(Debug)]
pub(crate) enum Refused {
    /// There is no such process.
    Gone,
    /// Not this time; the next may succeed.
    Now,
    /// This process will never get one.
    Never,
}
