//! Copies of what is read of an output, for callbacks and files: consumers that may be slow, each
//! on a thread of its own.
//!
//! ```text
//! tap_plan     the consumers that are asked for
//! full_file    files that get all of it
//! consumer     the thread of a consumer, and the queue that leads to it
//! tap          what a consumer does with a piece
//! ```

mod consumer;
mod full_file;
mod tap;
mod tap_plan;

pub(crate) use consumer::{
    ConsumerKind, ConsumerRole, ConsumerThread, LineCallback, NewConsumer, OutputConsumer,
};
pub use tap::{Piece, Tap};
pub(crate) use tap::{TeeTap, WriterTap};
pub(crate) use tap_plan::TapPlan;
