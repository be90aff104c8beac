//! Which way a queue goes between a program and the one that has started it.

/// Which way a queue goes that a child gets at its start: see
/// [`Command::channel`](crate::Command::channel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// The child sends: [`Sender::of_parent`](super::Sender::of_parent) there,
    /// [`Child::receiver`](crate::Child::receiver) here.
    FromChild,
    /// The child receives: [`Receiver::of_parent`](super::Receiver::of_parent) there,
    /// [`Child::sender`](crate::Child::sender) here.
    ToChild,
}

/// The variable that tells the child.
pub(crate) const VARIABLE: &str = "PROCWRIGHT_CHANNEL";

/// So many descriptors at most.
pub(crate) const MOST_FILES: usize = 4;

impl Channel {
    /// What the parent is to the child.
    pub(super) fn who(self) -> &'static str {
        match self {
            Channel::FromChild => "receiver",
            Channel::ToChild => "sender",
        }
    }
}
