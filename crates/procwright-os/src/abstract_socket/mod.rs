//! Unix sockets with a name in no directory, where processes of one user meet: one
//! listens, others connect, and neither waits for the other.

use std::os::fd::OwnedFd;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

/// Accepts the next connection. One of another user is closed again, unless that is
/// root.
///
/// # Errors
/// Those of `accept4(2)`.
#[doc(alias = "accept4")]
pub use imp::accept;
/// Connects at once, whether or not the other side does anything. What is sent arrives
/// when the other side has accepted. If that ends before, this end tells as if it had
/// accepted.
///
/// # Errors
/// `ConnectionRefused` if there is no listener, `WouldBlock` if too many connections
/// wait to be accepted, `PermissionDenied` if another user listens there.
pub use imp::connect;
/// Sends the first message of a connection: a number.
///
/// # Errors
/// Those of `send(2)`.
pub use imp::introduce;
/// Receives the first message of a connection.
pub use imp::introduced;
/// Listens under a name. The descriptor is readable while a connection waits to be
/// accepted. The name is free again with the last descriptor of it.
///
/// # Errors
/// `AddrInUse` if another process listens there.
#[doc(alias = "bind")]
pub use imp::listen;
/// True if the other end of a connection, or of a pair of sockets, was made by that
/// process.
#[doc(alias = "SO_PEERCRED")]
pub use imp::peer_is;

/// A name: so many bytes, of which the last are 0.
pub type SocketName = [u8; 32];

/// The result of [`accept`].
#[derive(Debug)]
pub enum Accepted {
    /// A connection of our user or root.
    Peer(OwnedFd),
    /// A connection of another user, closed again.
    OtherUser,
    /// No connection waits.
    Nothing,
}

/// The first message of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Introduced {
    /// Number that was sent.
    As(u32),
    /// Nothing was sent yet.
    NotYet,
    /// The other end is closed, or sent something else.
    Gone,
}
