//! Errors of queues.

use std::io;
use std::path::PathBuf;

/// Reason why no message was sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The receiver's process has died, or runs another program. Messages that it had not
    /// received stay in the queue for as long as any process has that; once another
    /// receiver has [taken over](crate::Receiver::take_over), sending goes on.
    /// `EOWNERDEAD`.
    #[doc(alias = "EOWNERDEAD")]
    #[error(
        "the receiver of the queue has died; what it has not received is kept for \
         another that takes over"
    )]
    ReceiverDead,
    /// The other side has left: the receiver was dropped; or every sender is gone, no
    /// invitation is left, and all that they had sent was received.
    #[doc(alias = "EPIPE")]
    #[error("the other side of the queue is closed")]
    Closed,
    /// The lane has no room, and may not grow or was told not to wait.
    #[doc(alias = "EAGAIN")]
    #[error("the queue is full; wait for room, or make it with a larger limit")]
    Full,
    /// No message is there now.
    #[doc(alias = "EAGAIN")]
    #[error("the queue is empty")]
    Empty,
    /// The time is up. Nothing was sent or received.
    #[doc(alias = "ETIMEDOUT")]
    #[error("no room or no message within the time")]
    TimedOut,
    /// The message does not fit, however empty the queue is.
    #[doc(alias = "EMSGSIZE")]
    #[error(
        "a message of {length} bytes is too long for this queue: at most {most} fit; \
             make it with a larger limit"
    )]
    TooLarge {
        /// Length of the message.
        length: usize,
        /// Length of the longest message that fits.
        most: usize,
    },
    /// Every lane is taken: by a sender, or by messages of one that is gone.
    #[doc(alias = "EBUSY")]
    #[error(
        "all lanes of the queue are taken: {0}, by senders, or by what those that have left had \
         sent and was not received yet\n  \
         hint: wait for a lane, or make the queue with more"
    )]
    NoLane(u32),
    /// No place at the queue was to be had within the time, for this reason.
    #[doc(alias = "ETIMEDOUT")]
    #[error("no place at the queue within the time: {0}")]
    OpenTimedOut(#[source] Box<Error>),
    /// The queue has a receiver that lives.
    #[error("the queue has a receiver that lives{}", suffix(.pid, ": process "))]
    ReceiverAlive {
        /// The receiver's process, as far as that is known.
        pid: Option<i32>,
    },
    /// A queue of that name exists, and its receiver lives, or a process is about to become
    /// its receiver.
    #[doc(alias = "EADDRINUSE")]
    #[error("the name {name:?} is that of a queue whose receiver lives{}", suffix(.pid, ": process "))]
    NameTaken {
        /// The name.
        name: String,
        /// The receiver's process, as far as that is known.
        pid: Option<i32>,
    },
    /// No queue has that name, or no process has it any more.
    #[doc(alias = "ENOENT")]
    #[error(
        "there is no queue {name:?} in {}\n  \
         hint: its receiver makes it, under the same user; if it does so in another directory, \
         set PROCWRIGHT_QUEUE_DIR to the same one on both sides",
        directory.display()
    )]
    NoQueue {
        /// The name.
        name: String,
        /// The directory of the names, as this process finds it: `PROCWRIGHT_QUEUE_DIR`,
        /// or what follows from `XDG_RUNTIME_DIR`.
        directory: PathBuf,
    },
    /// No queue can have that name.
    #[error(
        "name is {0:?}, which is no name for a queue: pass 1 to 64 of the characters A-Z, a-z, 0-9, \
             '.', '_' and '-', the first of which is no '.'"
    )]
    BadName(String),
    /// The queue was made by a program that uses another version of the format.
    #[error("the queue has version {0} of its format, and this program knows 1")]
    WrongVersion(u32),
    /// The file that was handed over is no queue, or could be cut short by others.
    #[error("this is no invitation to a queue: {0}")]
    Invalid(String),
    /// Nonsense that the other side has left in memory. That lane is not used any more; all
    /// others are.
    #[error("lane {lane} of the queue is damaged{}: {what}", suffix(.peer, ", by process "))]
    Damaged {
        /// Number of the lane.
        lane: u32,
        /// The process at the lane's other end, as far as that is known.
        peer: Option<i32>,
        /// Description of what was found.
        what: &'static str,
    },
    /// A fork uses the end of a queue of the process that it was forked from.
    #[error("this end of the queue is that of the process which this one was forked from")]
    Forked,
    /// The program was not started with such a channel, or that cannot be told.
    #[error(
        "no channel of the parent: {0}\n  \
         hint: start this program with Command::channel() (Python: channel=…, Ruby: channel: …)"
    )]
    NoParent(String),
    /// A child has no such channel, or none any more.
    #[error("no channel of the child: {0}")]
    NoChannel(String),
    /// Queues do not exist on this system.
    #[doc(alias = "ENOSYS")]
    #[error("a queue cannot be had here: {0}")]
    Unsupported(io::Error),
    /// The system refused: no memory is left, or no descriptor.
    #[error("queue: {0}")]
    Io(#[from] io::Error),
}

fn suffix(peer: &Option<i32>, intro: &str) -> String {
    match peer {
        Some(pid) => format!("{intro}{pid}"),
        None => String::new(),
    }
}

impl Error {
    /// An error of the system, which may mean that queues do not exist here.
    pub(super) fn from_io(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::Unsupported => Error::Unsupported(error),
            io::ErrorKind::InvalidData => Error::Invalid(error.to_string()),
            _ => Error::Io(error),
        }
    }
}

/// The system's number for the error, where it has one.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        use io::ErrorKind as Kind;
        let kind = match error {
            Error::ReceiverDead => return io::Error::from_raw_os_error(libc::EOWNERDEAD),
            Error::Io(error) | Error::Unsupported(error) => return error,
            Error::Closed => Kind::BrokenPipe,
            Error::Full | Error::Empty => Kind::WouldBlock,
            Error::TimedOut | Error::OpenTimedOut(_) => Kind::TimedOut,
            Error::TooLarge { .. } | Error::BadName(_) => Kind::InvalidInput,
            Error::NoLane(_) => Kind::ResourceBusy,
            Error::ReceiverAlive { .. } | Error::NameTaken { .. } => Kind::AddrInUse,
            Error::NoQueue { .. } => Kind::NotFound,
            Error::WrongVersion(_) | Error::Forked => Kind::Unsupported,
            Error::NoParent(_) | Error::NoChannel(_) => Kind::NotConnected,
            Error::Invalid(_) | Error::Damaged { .. } => Kind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
