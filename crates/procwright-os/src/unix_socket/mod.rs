//! Unix sockets where processes of one user meet: one listens, others connect, and neither
//! waits for the other.
//!
//! An abstract name is seen by all processes of the machine, and any of them may fill what
//! waits to be accepted. A [private](listen_private) socket is bound in a directory that no
//! other user can enter, and has lost its name there once it listens: who may look into the
//! process that listens comes to it through `/proc`, and nobody else.

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
/// Connects at once to who listens under an abstract name, whether or not the other side
/// does anything. What is sent arrives when the other side has accepted. If that ends
/// before, this end tells as if it had accepted.
///
/// # Errors
/// `ConnectionRefused` if there is no listener, `WouldBlock` if too many connections
/// wait to be accepted, `PermissionDenied` if another user listens there.
pub use imp::connect_abstract;
/// Connects at once to who listens in private under that name, through the descriptor that
/// this process of our pid namespace has of its socket.
///
/// # Errors
/// As [`connect_abstract`]. `ConnectionRefused` also if the process or the descriptor is
/// another by now, `PermissionDenied` also if we may not look into the process.
pub use imp::connect_private;
/// Sends the first message of a connection: a number.
///
/// # Errors
/// Those of `send(2)`.
pub use imp::introduce;
/// Receives the first message of a connection.
pub use imp::introduced;
/// Listens under an abstract name. The descriptor is readable while a connection waits to be
/// accepted. The name is free again with the last descriptor of it.
///
/// # Errors
/// `AddrInUse` if another process listens there.
#[doc(alias = "bind")]
pub use imp::listen_abstract;
/// Listens where only who may look into this process can [connect](connect_private). The
/// socket gets its name in that directory, and loses it again: nothing is left there. What
/// has the name is removed, so the caller has a lock: nobody else is about to listen under
/// that name.
///
/// # Errors
/// Those of `bind(2)`, `listen(2)` and `open(2)`; there is no `/proc`.
#[doc(alias = "O_PATH")]
pub use imp::listen_private;
/// True if the other end of a connection, or of a pair of sockets, was made by that
/// process.
#[doc(alias = "SO_PEERCRED")]
pub use imp::peer_is;

/// A name: so many bytes, of which the last are 0.
pub type SocketName = [u8; 32];

/// A socket that [listens in private](listen_private).
#[derive(Debug)]
pub struct PrivateListener {
    /// Socket, readable while a connection waits to be accepted.
    pub listener: OwnedFd,
    /// Descriptor by whose number others connect. It cannot be read, written or accepted
    /// from.
    pub door: OwnedFd,
}

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
