//! Errors of a queue as exit codes.

use procwright::queue::Error;

use crate::exit::Termination;
use crate::message;

/// Prints the error, and returns the termination that it leads to.
pub(super) fn failure(error: Error) -> Termination {
    message::print(&error);
    match error {
        Error::TimedOut | Error::OpenTimedOut(_) => Termination::TIMED_OUT,
        Error::ReceiverDead
        | Error::Closed
        | Error::NoQueue { .. }
        | Error::NoLane(_)
        | Error::Full => Termination::REFUSED,
        _ => Termination::TROUBLE,
    }
}
