//! Errors of a stage.

use std::io;

use procwright_os::Invalid;

/// Why a stage cannot be made, or has not passed on everything.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that cannot be used.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// No descriptor, thread or memory is left for it.
    #[error("cannot set up the buffer: {0}")]
    Setup(io::Error),
    /// The input cannot be read on. All that came before has been passed on.
    #[error("cannot read the input at offset {offset}: {source}")]
    Read {
        /// The number of bytes that had come.
        offset: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write the output at offset {offset}: {source}")]
    Write {
        /// The number of bytes that had been written.
        offset: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// More came than may be kept, by [`Overflow::Fail`](crate::Overflow::Fail). All that
    /// came before has been passed on.
    #[error("more came than may be kept, at offset {offset}")]
    Overflowed {
        /// The offset in the stream of the first byte that was too much.
        offset: u64,
    },
    /// A line of one of several programs in the middle of a pipeline is longer than may be kept. All
    /// whole lines that came before have been passed on.
    #[error(
        "a line of more than {most} bytes: lines of programs side by side in the middle are kept \
         until they are whole"
    )]
    LineTooLong {
        /// The most that is kept of a line.
        most: usize,
    },
    /// Bytes that lay on disk cannot be read again. What is behind them has not
    /// been passed on.
    #[error("{length} bytes at offset {offset} were on disk and cannot be read: {source}")]
    Lost {
        /// The offset in the stream of the first of them.
        offset: u64,
        /// The number of them.
        length: u64,
        /// The system's answer.
        source: io::Error,
    },
}
