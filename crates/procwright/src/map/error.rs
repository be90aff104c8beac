//! What ends a map before its input does.

use std::io;

use crate::error::{BoxError, Invalid};

/// An error of the map itself. One of a command is told of with that command
/// ([`Ended`](super::Ended)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that cannot be used. Nothing was started.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// No thread or no descriptor can be had. Nothing was started.
    #[error("cannot begin to run commands: {0}")]
    Resources(#[source] io::Error),
    /// The iterator that the commands come from has failed. Nothing more was started, and what
    /// ran was stopped.
    #[error("the commands to run cannot be had: {0}")]
    Input(#[source] BoxError),
    /// The journal cannot be read or written. Nothing more was started, and what ran was stopped:
    /// a command that is not written down could be run twice.
    #[cfg(feature = "serde")]
    #[error(transparent)]
    Journal(#[from] super::journal::JournalError),
    /// The map is that of the process which this one was forked from, and its threads are there.
    #[error("this map belongs to the process that this one was forked from")]
    Forked,
    /// Code of the caller's that takes part in the map has panicked, and what ran was stopped.
    #[error("{0} panicked")]
    Panicked(&'static str),
}

/// What has stopped a map before the end of its input, or its commands before theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoppedBy {
    /// So many commands have failed ([`Map::stop_after_failures`](super::Map::stop_after_failures)).
    Failures,
    /// The deadline of the map ([`Map::deadline`](super::Map::deadline)).
    Deadline,
    /// A cancel, or a [`Remote`](super::Remote).
    Cancel,
    /// An [`Error`] of the map itself.
    Error,
}

impl StoppedBy {
    /// The name that stands in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            StoppedBy::Failures => "failures",
            StoppedBy::Deadline => "deadline",
            StoppedBy::Cancel => "cancel",
            StoppedBy::Error => "error",
        }
    }
}
