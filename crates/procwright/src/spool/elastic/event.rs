//! Events of a queue, and what listens for them.

use std::io;
use std::path::PathBuf;

/// Something that happened to the queue, told where it happens: by the producer
/// or the spill thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The memory is nearly full, and bytes begin to go to files in this
    /// directory. Told once.
    Spilling {
        /// The directory of the files.
        directory: PathBuf,
    },
    /// Bytes cannot go to disk, for now or for good. What is in memory stays
    /// there, and the producer waits when that is full. Tried again as soon as
    /// room was made, and once a second. Told again only after a minute without.
    Degraded {
        /// The operation that was tried.
        what: &'static str,
        /// The system's answer.
        error: io::Error,
    },
    /// Bytes are dropped for the first time, as the policy says.
    Dropping {
        /// The offset in the stream of the first of them.
        offset: u64,
    },
    /// More came than may be kept, by [`Overflow::Fail`](crate::Overflow::Fail). No more
    /// is taken.
    Overflowed {
        /// The offset in the stream of the first byte that was too much.
        offset: u64,
    },
}

/// A listener. The call comes without a lock held, on the thread of the producer or
/// of the spill, and has to be quick.
pub(crate) type Hook = Box<dyn Fn(&Event) + Send + Sync>;
