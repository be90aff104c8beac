//! Errors of a queue's consumer.

use std::io;

/// Bytes that cannot be delivered. The error comes wrapped in an [`io::Error`] of
/// kind `Other`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// Bytes that lay on disk and cannot be read: lost. What is behind them can
    /// still be had.
    #[error("{length} bytes at offset {offset} were on disk and cannot be read: {source}")]
    Lost {
        /// The offset in the stream of the first of them.
        offset: u64,
        /// The number of them.
        length: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// More came than may be kept; what came before has been delivered.
    #[error("more bytes came than may be kept, at offset {offset}")]
    Overflowed {
        /// The number of bytes that came before.
        offset: u64,
    },
    /// The producer failed; what came before has been delivered.
    #[error("{0}")]
    Producer(crate::error::BoxError),
}
