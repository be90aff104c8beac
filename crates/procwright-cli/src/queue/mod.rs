//! `procwright queue`: queues by hand.

mod recv;
mod send;
mod stat;

use std::fmt::Display;

use procwright::queue::Error;

use crate::args::{QueueArgs, QueueCommand};
use crate::exit::End;
use crate::message::say;

pub(crate) fn queue(args: &QueueArgs) -> End {
    let done = match &args.command {
        QueueCommand::Send(args) => send::send(args),
        QueueCommand::Recv(args) => recv::recv(args),
        QueueCommand::Stat(args) => stat::stat(args),
    };
    done.unwrap_or_else(|end| end)
}

/// Says what is wrong, and how to end then.
fn trouble(message: impl Display) -> End {
    say(message);
    End::TROUBLE
}

/// What is wrong with a queue, as an end.
fn refused(error: &Error) -> End {
    say(error);
    match error {
        Error::TimedOut => End::TIMED_OUT,
        Error::ReceiverDead | Error::Closed | Error::NoQueue(_) | Error::Full => End::REFUSED,
        _ => End::TROUBLE,
    }
}
