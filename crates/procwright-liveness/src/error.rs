//! What can go wrong with tokens and monitors.

use std::io;

/// Why there is no token, or no monitor of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be served on this system, in this sandbox, or by this kind
    /// of monitor.
    #[error("{0}")]
    Unsupported(io::Error),
    /// This process has as many as it may.
    #[error(
        "this process holds {0} liveness tokens or rights to clean up, which is all that the \
         kernel looks after"
    )]
    Full(usize),
    /// The invitation is not that of a token, or leads to memory that others could
    /// change.
    #[error("this is no invitation to a liveness token: {0}")]
    Invalid(String),
    /// The token was one of an earlier boot, or of a cell that is another's.
    #[error("the liveness token is stale: {0}")]
    Stale(&'static str),
    /// This is a fork of the process whose token it is.
    #[error("the liveness token is that of the process which this one was forked from")]
    Forked,
    /// A thread other than the main one has asked for a token of its own.
    #[error(
        "a thread's token is refused off the main thread, where its end would be taken for \
         that of the process: use Token (Python, Ruby: LivenessToken), or make it on the main thread"
    )]
    NotMain,
    /// This process cannot tell who its parent is.
    #[error(
        "no parent to watch: {0}\n  \
         hint: start this program with Command::liveness() (Python: liveness=True, Ruby: liveness: true)"
    )]
    NoParent(String),
    /// The system refused.
    #[error("liveness: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    /// The error of a token that could not be made, or not be mapped.
    pub(super) fn no_token(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::Unsupported => Error::unsupported(format!(
                "a liveness token cannot be had here: {error}; monitor the process instead"
            )),
            _ => Error::Io(error),
        }
    }

    pub(super) fn unsupported(why: impl Into<String>) -> Error {
        Error::Unsupported(io::Error::new(io::ErrorKind::Unsupported, why.into()))
    }
}
