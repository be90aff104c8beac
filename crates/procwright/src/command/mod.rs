//! The builder that a run or a child starts from.

mod attributes;
mod builder;
mod ongoing;
mod pty;
mod run;
mod setup;
mod spawn;
mod stdio;
mod taps;
mod validate;

pub use builder::Command;
pub use ongoing::Ongoing;
pub(crate) use spawn::stream_listener;
