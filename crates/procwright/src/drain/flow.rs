//! The progress of a stream.

use std::time::Duration;

/// How far a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flow {
    /// How many bytes have been read.
    pub bytes: u64,
    /// How long the program could not write because the pipe was full, up to now.
    /// An upper bound; zero if it never was, none where that is not known, as of
    /// a terminal.
    pub blocked: Option<Duration>,
}
