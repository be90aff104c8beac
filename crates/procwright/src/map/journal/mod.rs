//! The journal of a map: lines of JSON, by which a later map knows what has been done.

mod admission;
mod entry;
mod error;
mod file;
mod identity;
mod joblog;
mod line;

pub(super) use admission::Admission;
pub use admission::Journal;
pub use error::JournalError;
pub use joblog::Joblog;
