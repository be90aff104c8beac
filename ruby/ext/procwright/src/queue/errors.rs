//! Errors of queues as exceptions.

use magnus::{IntoValue, Value};
use procwright::queue::Error;

use crate::errors::{invalid_words, made, refused, ruby};

/// Who was told.
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
pub(crate) fn failed(error: &Error, side: Side) -> magnus::Error {
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
        Error::Invalid(_) | Error::BadName(_) => return invalid_words(&error.to_string()),
        Error::Io(error) => return refused(error),
        Error::NoQueue(_) => ("NoQueue", none),
        Error::NoParent(_) => ("NoParent", none),
        Error::NoChannel(_) => ("NoChannel", none),
        Error::ReceiverDead => ("ReceiverDead", none),
        Error::Closed => ("Closed", none),
        Error::Full => ("Full", none),
        Error::NoLane(_) => ("NoLane", none),
        Error::WrongVersion(_) => ("WrongVersion", none),
        Error::Forked => ("Forked", none),
        Error::Unsupported(_) => ("Unsupported", none),
        _ => return made("internal", (format!("{}: {error}", side.name()),)),
    };
    let [one, other] = more;
    made("queue_failed", (class, error.to_string(), one, other))
}

/// One that has nothing but words.
#[cold]
pub(super) fn made_of(class: &str, words: &str) -> magnus::Error {
    made("queue_failed", (class, words, (), ()))
}

/// It was closed in this process, or used up.
#[cold]
pub(crate) fn end_closed(side: Side, inside: bool) -> magnus::Error {
    made("queue_end_closed", (side.name(), inside))
}
