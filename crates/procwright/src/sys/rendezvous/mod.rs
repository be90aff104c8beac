//! A place where processes of one user meet: one listens under a name that lies in
//! no directory, others come, and neither waits for the other.
//!
//! Contract of every platform file:
//!
//! - `Name`: what fits into the memory that both sides see, and nothing longer.
//! - `listen(name)`: a descriptor that is readable while somebody has come who was
//!   not let in. It is gone with the last descriptor of it.
//! - `connect(name)`: one end of a link, at once, whether or not the other side does
//!   anything. `ConnectionRefused` if nobody listens, `WouldBlock` if too many have
//!   come who were not let in, `PermissionDenied` if another user listens there.
//!   What is sent over it comes when the other side has let it in. If that is gone
//!   before, this end tells as if it had been in.
//! - `accept(listener)`: the other end of the next link. Who is of another user is let
//!   out again, unless that is root.
//! - `is_of(link, pid)`: whether the other end of a link, or of a pair of sockets, was
//!   made by that process.
//! - `introduce(link, number)`, and on the other side `introduced(link)`: the first
//!   thing to be said.

use std::os::fd::OwnedFd;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

pub(crate) use imp::{accept, connect, introduce, introduced, is_of, listen};

/// So many bytes, of which the last are 0.
pub(crate) type Name = [u8; 32];

/// Who has come.
#[derive(Debug)]
pub(crate) enum Came {
    In(OwnedFd),
    /// One of another user, who is out again.
    NotOurs,
    Nobody,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Introduced {
    As(u32),
    NotYet,
    Gone,
}
