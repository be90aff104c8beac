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
//! - `number(pidfd)`: the number of its process, none if that was reaped. `EBADF`
//!   if it is another kind of descriptor, `Unsupported` if the process has no
//!   number here: it is outside our pid namespace.
//! - `life(pidfd)`: see [`Life`].
//! - `tells_of_reaps(pidfd)`: whether such a descriptor is hung up when its
//!   process is reaped.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

pub(crate) use imp::{has_exited, inode, life, number, open, send, send_group, tells_of_reaps};

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// A thread of it runs, or may.
    Runs,
    /// All its threads have ended. It may have been reaped where that cannot be
    /// seen ([`tells_of_reaps`]).
    Ended,
    /// It has ended, and its parent knows.
    Reaped,
}

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
