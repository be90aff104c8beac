//! What can go wrong with queues.

use std::io;

/// Why a message was not sent, or none received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The receiver's process has died, or runs another program. What it had not
    /// received stays in the queue for as long as any process has that; once another
    /// receiver has [taken over](super::Receiver::take_over), sending goes on.
    /// `EOWNERDEAD`.
    #[error(
        "the receiver of the queue has died; what it has not received is kept for \
         another that takes over"
    )]
    ReceiverDead,
    /// The other side has left: the receiver was dropped; or every sender is gone,
    /// no invitation is left, and all that they had sent was received.
    #[error("the other side of the queue is closed")]
    Closed,
    /// There is no room, and the lane may not grow or was told not to wait.
    #[error("the queue is full; wait for room, or make it with a larger limit")]
    Full,
    /// There is no message now.
    #[error("the queue is empty")]
    Empty,
    /// The time is up. Nothing was sent or received.
    #[error("no room or no message within the time")]
    TimedOut,
    /// The message does not fit, however empty the queue is.
    #[error(
        "a message of {length} bytes is too long for this queue: at most {most} fit; \
             make it with a larger limit"
    )]
    TooLarge {
        /// Of the message.
        length: usize,
        /// The longest that fits.
        most: usize,
    },
    /// All lanes are taken.
    #[error("as many senders as the queue has lanes: {0}; make it with more lanes")]
    NoLane(u32),
    /// It has a receiver, which lives.
    #[error("the queue has a receiver that lives{}", by(.pid, ": process "))]
    ReceiverAlive {
        /// Its process, as far as that is known.
        pid: Option<i32>,
    },
    /// There is a queue of that name, and its receiver lives, or somebody is about to
    /// become it.
    #[error("the name {name:?} is that of a queue whose receiver lives{}", by(.pid, ": process "))]
    NameTaken {
        /// The name.
        name: String,
        /// The receiver's process, as far as that is known.
        pid: Option<i32>,
    },
    /// There is no queue of that name, or nobody has it any more.
    #[error("there is no queue {0:?}: its receiver makes it, under the same user")]
    NoQueue(String),
    /// No queue can have that name.
    #[error(
        "{0:?} is no name for a queue: pass 1 to 64 of the characters A-Z, a-z, 0-9, \
             '.', '_' and '-', the first of which is no '.'"
    )]
    BadName(String),
    /// The queue was made by a program that uses another version of the format.
    #[error("the queue has version {0} of its format, and this program knows 1")]
    WrongVersion(u32),
    /// What was handed over is no queue, or could be cut short by others.
    #[error("this is no invitation to a queue: {0}")]
    Invalid(String),
    /// What the other side has left in memory makes no sense. That lane is not
    /// used any more; all others are.
    #[error("lane {lane} of the queue is damaged{}: {what}", by(.peer, ", by process "))]
    Damaged {
        /// Its number.
        lane: u32,
        /// The process at its other end, as far as that is known.
        peer: Option<i32>,
        /// What was found.
        what: &'static str,
    },
    /// This is a fork of the process whose end of the queue it is.
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
    /// There are no queues here.
    #[error("a queue cannot be had here: {0}")]
    Unsupported(io::Error),
    /// The system refused: there is no memory left, or no descriptor.
    #[error("queue: {0}")]
    Io(#[from] io::Error),
}

fn by(peer: &Option<i32>, who: &str) -> String {
    match peer {
        Some(pid) => format!("{who}{pid}"),
        None => String::new(),
    }
}

impl Error {
    /// One of the system's, which may mean that there are no queues here.
    pub(super) fn of(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::Unsupported => Error::Unsupported(error),
            io::ErrorKind::InvalidData => Error::Invalid(error.to_string()),
            _ => Error::Io(error),
        }
    }
}

/// With the number that the system has for it, where there is one.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        use io::ErrorKind as Kind;
        let kind = match error {
            Error::ReceiverDead => return io::Error::from_raw_os_error(libc::EOWNERDEAD),
            Error::Io(error) | Error::Unsupported(error) => return error,
            Error::Closed => Kind::BrokenPipe,
            Error::Full | Error::Empty => Kind::WouldBlock,
            Error::TimedOut => Kind::TimedOut,
            Error::TooLarge { .. } | Error::BadName(_) => Kind::InvalidInput,
            Error::NoLane(_) => Kind::ResourceBusy,
            Error::ReceiverAlive { .. } | Error::NameTaken { .. } => Kind::AddrInUse,
            Error::NoQueue(_) => Kind::NotFound,
            Error::WrongVersion(_) | Error::Forked => Kind::Unsupported,
            Error::NoParent(_) | Error::NoChannel(_) => Kind::NotConnected,
            Error::Invalid(_) | Error::Damaged { .. } => Kind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
