//! `procwright queue`: queues by hand.

mod failure;
mod recv;
mod send;
mod stat;

use crate::args::{QueueArgs, QueueCommand};
use crate::exit::Termination;

/// Sends, receives or shows.
///
/// # Errors
/// What could not be done.
pub(crate) fn queue(args: &QueueArgs) -> Result<Termination, Termination> {
    match &args.command {
        QueueCommand::Send(args) => send::send(args),
        QueueCommand::Recv(args) => recv::recv(args),
        QueueCommand::Stat(args) => stat::stat(args),
    }
}
