//! The format of a queue's memory: `docs/reference/queue-format.md` in code. A test holds
//! one to the other.
//!
//! Neither state nor system calls. Values from a file were written by another process, so
//! each is checked here before any calculation with it.
//!
//! Layers, lowest first: `layout`; `geometry`; `header` and `record`.

mod geometry;
mod header;
mod layout;
mod record;
#[cfg(test)]
pub(crate) mod reference;
#[cfg(test)]
mod tests;

pub(crate) use geometry::Geometry;
pub(crate) use header::{HEADER_SIZE, HeaderError, QueueHeader};
pub(crate) use layout::*;
pub(crate) use record::{Cursor, POSITION_END, REFUSED, Record, RecordKind, Stamp};
