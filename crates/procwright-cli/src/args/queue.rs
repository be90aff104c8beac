//! Options of `procwright queue` and its subcommands.

use std::ffi::OsString;

use clap::{Args, Subcommand, ValueEnum};
use procwright::queue::Overflow;
use procwright::time::Timeout;

use crate::units;

const QUEUE_HELP: &str = "\
A queue is in memory that processes share. The one that receives makes it; it is
there as long as any process has it. In programs: procwright::queue (Rust),
procwright.queue (Python). More: procwright man queue";

/// See and feed queues by hand.
#[derive(Debug, Args)]
#[command(after_help = QUEUE_HELP)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    pub(crate) command: QueueCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    // Each variant is described at its options.
    Send(SendArgs),
    Recv(RecvArgs),
    Stat(StatArgs),
}

const RECV_HELP: &str = "\
A message counts as received once it was written to stdout: if this command is
killed, whoever receives next gets it again. What is left when it ends is there
for the next, as long as a sender is. Records: 4 bytes of length, the lowest
first, then the message.
Exit code: 0, 3 timed out, 125 wrong usage, a name that is taken, or trouble of
our own; death by SIGPIPE if nobody reads stdout.
More: procwright man queue-recv";

/// Receive from the queue of a name, and print what comes.
///
/// Makes the queue if there is none of that name. If there is one whose receiver has
/// died, it is taken over: its senders go on, and what they had sent is printed.
#[derive(Debug, Args)]
#[command(after_help = RECV_HELP, override_usage = "procwright queue recv [OPTIONS] NAME")]
pub(crate) struct RecvArgs {
    /// End after so many messages
    ///
    /// What else has come is told of: it waits for the next receiver while a sender is there, and
    /// is lost otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// End after this time
    ///
    /// With exit code 3, whatever has come. 0 prints what is there.
    #[arg(long, value_name = "DURATION", value_parser = units::timeout)]
    pub(crate) timeout: Option<Timeout>,

    /// End when no message has come for so long
    ///
    /// With exit code 3.
    #[arg(long, value_name = "DURATION", value_parser = units::timeout)]
    pub(crate) idle_timeout: Option<Timeout>,

    /// End when all senders that came have left
    ///
    /// Once at least one was there, and all that they sent was printed.
    #[arg(long)]
    pub(crate) until_closed: bool,

    /// How messages are told apart on stdout
    ///
    /// lines: a newline is put behind each. Of a message with newlines in it nobody can
    /// tell where it ends. records: its length in front of each, as 4 bytes, the lowest
    /// first.
    #[arg(
        long,
        value_name = "lines|records",
        default_value = "lines",
        hide_possible_values = true
    )]
    pub(crate) format: FormatArg,

    /// Make the queue for so many senders at a time
    ///
    /// From 1 to 4096. As --limit it is for a queue that is made, not for one that is
    /// taken over.
    #[arg(long, value_name = "N", default_value = "64", value_parser = units::count)]
    pub(crate) lanes: u32,

    /// Make it so that a sender's messages take this at most
    ///
    /// At least 4KiB. Half of it is room for messages that wait, and the longest message.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = units::size)]
    pub(crate) limit: u64,

    /// Of the queue: 1 to 64 of A-Z a-z 0-9 . _ -
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

const SEND_HELP: &str = "\
Without MESSAGE, or with - alone, each line of stdin is one, without its
newline; with --format records each of its records: 4 bytes of length, the
lowest first, then the message.
Exit code: 0 when all were sent, 1 the receiver is dead or has left, there is
none, all lanes are taken, or the queue is full under --overflow fail, 3 timed
out, 125 wrong usage or trouble of our own. More: procwright man queue-send";

/// Send messages to the queue of a name.
///
/// What was sent is received even if this command is killed then, as long as the
/// receiver lives or another takes over while any sender has the queue.
#[derive(Debug, Args)]
#[command(
    after_help = SEND_HELP,
    override_usage = "procwright queue send [OPTIONS] NAME [MESSAGE]..."
)]
pub(crate) struct SendArgs {
    /// Wait so long for a place at the queue
    ///
    /// It sleeps until somebody receives under that name, and until a lane is free: a queue
    /// has 64, or as many as `recv --lanes` says.
    #[arg(long, value_name = "DURATION", value_parser = units::timeout)]
    pub(crate) wait: Option<Timeout>,

    /// Wait no longer than this for room, for each message
    #[arg(long, value_name = "DURATION", value_parser = units::timeout)]
    pub(crate) timeout: Option<Timeout>,

    /// What to do when the queue is full
    ///
    /// block: wait for room. fail: exit with 1. drop-newest: throw the message away, and
    /// say how many at the end.
    #[arg(
        long,
        value_name = "block|fail|drop-newest",
        default_value = "block",
        hide_possible_values = true
    )]
    pub(crate) overflow: QueueOverflowArg,

    /// How messages are told apart on stdin
    #[arg(
        long,
        value_name = "lines|records",
        default_value = "lines",
        hide_possible_values = true
    )]
    pub(crate) format: FormatArg,

    /// Of the queue
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Messages, in place of stdin (-)
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Vec<OsString>,
}

const STAT_HELP: &str = "\
Looks from outside: nobody notices, and nothing is held up. Without NAME it
lists the names. Exit code: 0, 1 there is no such queue, 125 wrong usage or
trouble of our own. More: procwright man queue-stat";

/// Show a queue: who receives, who sends, and what waits.
#[derive(Debug, Args)]
#[command(after_help = STAT_HELP, override_usage = "procwright queue stat [OPTIONS] [NAME]")]
pub(crate) struct StatArgs {
    /// As JSON, one line
    #[arg(long)]
    pub(crate) json: bool,

    /// Of the queue [default: all names]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    Lines,
    Records,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueueOverflowArg {
    Block,
    Fail,
    DropNewest,
}

impl From<QueueOverflowArg> for Overflow {
    fn from(arg: QueueOverflowArg) -> Overflow {
        match arg {
            QueueOverflowArg::Block => Overflow::Block,
            QueueOverflowArg::Fail => Overflow::Fail,
            QueueOverflowArg::DropNewest => Overflow::DropNewest,
        }
    }
}
