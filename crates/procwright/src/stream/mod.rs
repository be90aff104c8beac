//! What a caller holds of a child's streams: [`Reader`] and [`Writer`].
//!
//! Both may be closed by any thread at any time, under others that are blocked
//! in them: those calls return [`Closed`].

mod line;
mod lines;
mod merged;
mod open;
mod outlet;
mod pipe;
#[cfg(all(test, not(procwright_loom)))]
mod race_tests;
mod reader;
mod readiness;
mod spool;
mod stall;
mod wait_for;
mod writer;

use std::io;

use crate::handle::Refused;
pub use crate::handle::{Paced, Patience};
pub use crate::spool::elastic::Broken;
pub(crate) use line::Line;
pub use lines::{
    Frame, Framing, Item, LineItem, LineReader, LineTooLong, Lines, Separator, TooLong,
};
pub use merged::{MergedItem, MergedLine, MergedReader, StdStream};
pub(crate) use outlet::{Account, Origin, Outlet};
pub use reader::{Chunk, Reader, WeakReader};
pub use readiness::Readiness;
pub(crate) use spool::Spool;
pub(crate) use stall::{Patient, StallWatch};
pub use stall::{Stalled, StalledStream};
pub use wait_for::{Found, wait_for};
pub use writer::Writer;

/// The stream was closed on this side, by this or another thread, before or
/// while it was used.
///
/// It comes wrapped in an [`io::Error`] of kind `Other`; [`Closed::is`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream was closed in this process")]
pub struct Closed;

impl Closed {
    /// Whether this error says that the stream was closed on this side.
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Closed>())
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        match refused {
            Refused::Closed => io::Error::other(Closed),
            Refused::TimedOut => io::ErrorKind::TimedOut.into(),
            Refused::Interrupted => io::ErrorKind::Interrupted.into(),
            Refused::Os(error) => error,
        }
    }
}
