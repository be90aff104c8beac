//! Errors of queues as exceptions.

use procwright::queue::Error;
use pyo3::prelude::*;

use super::end::Away;
use crate::errors::{MODULE, refused, typed};

/// Where they are.
const QUEUES: &str = "procwright._queue_errors";

/// Who was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Receiver,
    Sender,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Receiver => "receiver",
            Side::Sender => "sender",
        }
    }
}

#[cold]
pub(super) fn failed(py: Python<'_>, error: &Error, side: Side) -> PyErr {
    let text = error.to_string();
    let class = match (error, side) {
        (Error::TooLarge { length, most }, _) => {
            return typed(py, QUEUES, "TooLarge", (text, *length, *most));
        }
        (Error::Damaged { lane, peer, .. }, _) => {
            return typed(py, QUEUES, "Damaged", (text, *lane, *peer));
        }
        (Error::ReceiverAlive { pid }, _) => {
            return typed(py, QUEUES, "ReceiverAlive", (text, *pid));
        }
        (Error::NameTaken { name, pid }, _) => {
            return typed(py, QUEUES, "NameTaken", (text, name, *pid));
        }
        (Error::NoQueue(_), _) => "NoQueue",
        (Error::NoParent(_), _) => "NoParent",
        (Error::NoChannel(_), _) => "NoChannel",
        (Error::Invalid(_) | Error::BadName(_), _) => {
            return typed(py, MODULE, "InvalidValue", (text,));
        }
        (Error::Io(error), _) => return refused(py, error),
        (Error::ReceiverDead, _) => "ReceiverDead",
        (Error::Closed, Side::Receiver) => "_EndOfQueue",
        (Error::Closed, Side::Sender) => "_BrokenQueue",
        (Error::Full, _) => "Full",
        (Error::Empty, _) => "Empty",
        (Error::TimedOut, Side::Receiver) => "_NoMessageInTime",
        (Error::TimedOut, Side::Sender) => "_NoRoomInTime",
        (Error::NoLane(_), _) => "NoLane",
        (Error::WrongVersion(_), _) => "WrongVersion",
        (Error::Forked, _) => "Forked",
        (Error::Unsupported(_), _) => "Unsupported",
        _ => "QueueError",
    };
    typed(py, QUEUES, class, (text,))
}

/// An end that cannot be used now.
#[cold]
pub(super) fn away(py: Python<'_>, away: Away, side: Side) -> PyErr {
    let name = side.name();
    let (class, text) = match (away, side) {
        (Away::Forked, _) => return failed(py, &Error::Forked, side),
        (Away::Closed, _) => (
            "EndClosed",
            format!("the {name} was closed in this process"),
        ),
        (Away::Busy, Side::Receiver) => (
            "Busy",
            "somebody uses this receiver already, here or on another thread: a queue has one \
             receiver, for one thread at a time"
                .to_owned(),
        ),
        (Away::Busy, Side::Sender) => (
            "Busy",
            "somebody uses this sender already, here or on another thread: a sender is for one \
             thread at a time; make another with clone()"
                .to_owned(),
        ),
        (Away::Lent, Side::Receiver) => (
            "Busy",
            "a message of this receiver is still being read in place: leave the block of its \
             View, or release() it, first"
                .to_owned(),
        ),
        (Away::Lent, Side::Sender) => (
            "Busy",
            "a message of this sender is still being made in place: commit() or cancel() its \
             Reservation first"
                .to_owned(),
        ),
    };
    typed(py, QUEUES, class, (text,))
}

/// Whether that says that nobody will send any more.
pub(super) fn is_end(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let class = py.import(QUEUES)?.getattr("_EndOfQueue")?;
    Ok(error.is_instance(py, &class))
}
