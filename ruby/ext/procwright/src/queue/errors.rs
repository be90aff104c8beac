//! Errors of queues as exceptions.

use magnus::{IntoValue, Value};
use procwright::queue::Error;

use crate::errors::{exception, invalid_text, io_error};
use crate::gvl::ruby;

/// The object that has met the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Receiver,
    Sender,
    Invitation,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Receiver => "receiver",
            Side::Sender => "sender",
            Side::Invitation => "invitation",
        }
    }
}

#[cold]
pub(crate) fn queue_error(error: &Error, side: Side) -> magnus::Error {
    let ruby = ruby();
    let nil = || ruby.qnil().into_value_with(&ruby);
    let number = |pid: Option<i32>| pid.into_value_with(&ruby);
    let none: [Value; 2] = [nil(), nil()];
    let (class, more) = match error {
        Error::TooLarge { length, most } => (
            "TooLarge",
            [length.into_value_with(&ruby), most.into_value_with(&ruby)],
        ),
        Error::Damaged { lane, peer, .. } => {
            ("Damaged", [lane.into_value_with(&ruby), number(*peer)])
        }
        Error::ReceiverAlive { pid } => ("ReceiverAlive", [number(*pid), nil()]),
        Error::NameTaken { name, pid } => (
            "NameTaken",
            [name.as_str().into_value_with(&ruby), number(*pid)],
        ),
        Error::Invalid(_) | Error::BadName(_) => return invalid_text(&error.to_string()),
        Error::Io(error) => return io_error(error),
        Error::NoQueue { .. } => ("NoQueue", none),
        Error::NoParent(_) => ("NoParent", none),
        Error::NoChannel(_) => ("NoChannel", none),
        Error::ReceiverDead => ("ReceiverDead", none),
        Error::Closed => ("Closed", none),
        Error::Full => ("Full", none),
        Error::NoLane(_) => ("NoLane", none),
        Error::OpenTimedOut(_) => return exception("queue_place_error", (error.to_string(),)),
        Error::WrongVersion(_) => ("WrongVersion", none),
        Error::Forked => ("Forked", none),
        Error::Unsupported(_) => ("Unsupported", none),
        _ => return exception("internal_error", (format!("{}: {error}", side.name()),)),
    };
    let [one, other] = more;
    exception("queue_error", (class, error.to_string(), one, other))
}

/// An exception that has nothing but a message.
#[cold]
pub(super) fn queue_error_text(class: &str, words: &str) -> magnus::Error {
    exception("queue_error", (class, words, (), ()))
}

/// The exception for an end that was closed in this process, or an invitation that was used up.
#[cold]
pub(crate) fn end_closed_error(side: Side, was_waiting: bool) -> magnus::Error {
    exception("queue_end_closed_error", (side.name(), was_waiting))
}
