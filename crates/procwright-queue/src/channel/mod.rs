//! A queue between a program and the process that has started it.
//!
//! Layers, lowest first: [`Channel`] here; `child` and `parent`.

#[cfg(not(procwright_loom))]
mod child;
#[cfg(not(procwright_loom))]
mod parent;

#[cfg(not(procwright_loom))]
pub use parent::OurEnd;

/// Direction of a queue that a child gets at its start: see
/// [`Command::channel`](https://docs.rs/procwright/latest/procwright/struct.Command.html#method.channel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// The child sends: [`Sender::of_parent`](crate::Sender::of_parent) there,
    /// [`Child::receiver`](https://docs.rs/procwright/latest/procwright/struct.Child.html#method.receiver)
    /// here.
    FromChild,
    /// The child receives: [`Receiver::of_parent`](crate::Receiver::of_parent) there,
    /// [`Child::sender`](https://docs.rs/procwright/latest/procwright/struct.Child.html#method.sender)
    /// here.
    ToChild,
}

/// The environment variable in which the child finds its channel.
#[doc(hidden)]
pub const VARIABLE: &str = "PROCWRIGHT_CHANNEL";

/// Largest number of descriptors that a channel needs in the child.
#[doc(hidden)]
pub const MOST_FILES: usize = 4;

/// Version of the socket over which a child sends its invitation.
const SOCKET: &str = "pwc1";

impl Channel {
    /// The parent's end, as the child is told.
    pub(super) fn parent_role(self) -> &'static str {
        match self {
            Channel::FromChild => "receiver",
            Channel::ToChild => "sender",
        }
    }
}
