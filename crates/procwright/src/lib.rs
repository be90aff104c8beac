//! Runs programs, talks to them and knows when they end or die: without
//! deadlocks, polling or lost output. When something hangs, it says who and
//! why.
//!
//! ```
//! use std::time::Duration;
//! use procwright::Command;
//!
//! let output = Command::new("sh")
//!     .args(["-c", "echo out; echo err >&2"])
//!     .timeout(Duration::from_secs(60))
//!     .run()?;
//! assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
//! # Ok::<(), procwright::Error>(())
//! ```
#![deny(unsafe_code)]
// Where programs cannot be started yet, what reads and stops them is unused.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

pub mod buffer;
mod cancel;
mod child;
mod command;
mod drain;
pub mod error;
#[cfg(procwright_fault)]
mod fault;
mod handle;
mod heirloom;
mod holders;
mod ident;
pub mod liveness;
pub mod process;
pub mod queue;
mod run;
pub mod spec;
mod spool;
pub mod stream;
mod sync;
mod sys;
pub mod terminal;
pub mod time;
mod trace;
pub mod wait;

pub use cancel::Cancel;
pub use child::{Child, Communication, WaitError, duplicate_fd};
pub use command::{BoxError, Collected, Command, Failure, Ongoing};
pub use drain::{Flow, Segment};
pub use holders::{Holder, Holders};
pub use process::Process;
#[cfg(feature = "serde")]
pub use run::text_to_json;
pub use run::{
    Demand, Error, Event, Foreign, Moment, Output, Piece, Reason, Report, StreamInfo, Tap, Watch,
};
pub use spec::{Beyond, Limit, Sink, Spec, Stdin, Until};
pub use spool::memory;
pub use spool::{Budget, Memory, Overflow};
pub use wait::WaitSet;

/// The Rust examples of the documents, which run as tests like all others.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/guide.md")]
    mod guide {}
    #[doc = include_str!("../../../docs/concepts/queues.md")]
    mod queues {}
}
