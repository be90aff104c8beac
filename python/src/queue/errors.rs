//! Errors of queues as exceptions.

use procwright::queue::Error;
use pyo3::prelude::*;

use crate::errors::{INVALID, refused};
use crate::python::exception;

/// The module of the exceptions of queues.
const QUEUES: &str = "procwright._queue_errors";

/// The end that an exception is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueSide {
    Receiver,
    Sender,
}

impl QueueSide {
    fn name(self) -> &'static str {
        match self {
            QueueSide::Receiver => "receiver",
            QueueSide::Sender => "sender",
        }
    }
}

/// Why an end cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unavailable {
    Busy,
    Lent,
    Closed,
    /// In use when this process was forked.
    Forked,
}

/// The exception for an error of a receiver.
pub(super) fn receive_error(py: Python<'_>, error: &Error) -> PyErr {
    queue_error(py, error, QueueSide::Receiver)
}

/// The exception for an error of a sender.
pub(super) fn send_error(py: Python<'_>, error: &Error) -> PyErr {
    queue_error(py, error, QueueSide::Sender)
}

#[cold]
pub(super) fn queue_error(py: Python<'_>, error: &Error, side: QueueSide) -> PyErr {
    let text = error.to_string();
    let class = match (error, side) {
        (Error::TooLarge { length, most }, _) => {
            return exception(py, QUEUES, "TooLarge", (text, *length, *most));
        }
        (Error::Damaged { lane, peer, .. }, _) => {
            return exception(py, QUEUES, "Damaged", (text, *lane, *peer));
        }
        (Error::ReceiverAlive { pid }, _) => {
            return exception(py, QUEUES, "ReceiverAlive", (text, *pid));
        }
        (Error::NameTaken { name, pid }, _) => {
            return exception(py, QUEUES, "NameTaken", (text, name, *pid));
        }
        (Error::NoQueue { .. }, _) => "NoQueue",
        (Error::NoParent(_), _) => "NoParent",
        (Error::NoChannel(_), _) => "NoChannel",
        (Error::Invalid(_) | Error::BadName(_), _) => {
            return exception(py, INVALID, "InvalidValue", (text,));
        }
        (Error::Io(error), _) => return refused(py, error),
        (Error::ReceiverDead, _) => "ReceiverDead",
        (Error::Closed, QueueSide::Receiver) => "_EndOfQueue",
        (Error::Closed, QueueSide::Sender) => "_BrokenQueue",
        (Error::Full, _) => "Full",
        (Error::Empty, _) => "Empty",
        (Error::TimedOut, QueueSide::Receiver) => "_NoMessageInTime",
        (Error::TimedOut, QueueSide::Sender) => "_NoRoomInTime",
        (Error::OpenTimedOut(_), _) => "TimedOut",
        (Error::NoLane(_), _) => "NoLane",
        (Error::WrongVersion(_), _) => "WrongVersion",
        (Error::Forked, _) => "Forked",
        (Error::Unsupported(_), _) => "Unsupported",
        _ => "QueueError",
    };
    exception(py, QUEUES, class, (text,))
}

/// The exception for an end that cannot be used now.
#[cold]
pub(super) fn unavailable(py: Python<'_>, why: Unavailable, side: QueueSide) -> PyErr {
    let name = side.name();
    let (class, text) = match (why, side) {
        (Unavailable::Forked, _) => return queue_error(py, &Error::Forked, side),
        (Unavailable::Closed, _) => (
            "EndClosed",
            format!("the {name} was closed in this process"),
        ),
        (Unavailable::Busy, QueueSide::Receiver) => (
            "Busy",
            "somebody uses this receiver already, here or on another thread: a queue has one \
             receiver, for one thread at a time"
                .to_owned(),
        ),
        (Unavailable::Busy, QueueSide::Sender) => (
            "Busy",
            "somebody uses this sender already, here or on another thread: a sender is for one \
             thread at a time; make another with clone()"
                .to_owned(),
        ),
        (Unavailable::Lent, QueueSide::Receiver) => (
            "Busy",
            "a message of this receiver is still being read in place: leave the block of its \
             View, or release() it, first"
                .to_owned(),
        ),
        (Unavailable::Lent, QueueSide::Sender) => (
            "Busy",
            "a message of this sender is still being made in place: commit() or cancel() its \
             Reservation first"
                .to_owned(),
        ),
    };
    exception(py, QUEUES, class, (text,))
}

/// True for the exception which says that all senders have left.
pub(super) fn is_end(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let class = py.import(QUEUES)?.getattr("_EndOfQueue")?;
    Ok(error.is_instance(py, &class))
}

/// True for an exception which says that the other side has closed its end, or has died.
pub(super) fn is_of_other_side(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let module = py.import(QUEUES)?;
    Ok(error.is_instance(py, &module.getattr("Closed")?)
        || error.is_instance(py, &module.getattr("ReceiverDead")?))
}
