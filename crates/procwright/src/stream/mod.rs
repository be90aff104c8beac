//! The ends of a child's streams that a caller holds: [`Reader`] and [`Writer`].
//!
//! Both may be closed by any thread at any time, under others that are blocked
//! in them: those calls return [`Closed`].
//!
//! ```text
//! wait_for · from_fd · merged   a line of several streams; other descriptors; both as one
//! lines                         a Reader by lines
//! writer · reader               the ends that a caller holds
//! queue_reader · pipe_reader    behind a Reader: what the pump has read, or the bare pipe
//! stall_watch                   output that is not read while the child is waited for
//! output_monitor · pty_master · function_flags   what is known of an output; what a terminal's ends, and a function's, share
//! chunk · readiness · stalled   values
//! ```

mod chunk;
mod from_fd;
mod function_flags;
mod lines;
mod merged;
mod output_monitor;
mod pipe_reader;
mod pty_master;
mod queue_reader;
#[cfg(test)]
mod race_tests;
mod reader;
mod readiness;
mod stall_watch;
mod stalled;
mod wait_for;
mod writer;

pub use crate::spool::elastic::Broken;
pub use crate::std_stream::StdStream;
pub use chunk::Chunk;
pub(crate) use function_flags::FunctionFlags;
pub(crate) use lines::LineCutter;
pub use lines::{
    Frame, Framing, Item, LineItem, LineReader, LineTooLong, Lines, Separator, TooLong,
};
pub use merged::{MergedItem, MergedLine, MergedReader};
pub(crate) use output_monitor::{OutputMonitor, OutputPath, PipeCounters};
pub use procwright_os::handle::{Closed, Paced, Patience};
pub(crate) use pty_master::PtyMaster;
pub(crate) use queue_reader::QueueReader;
pub use reader::{Reader, WeakReader};
pub use readiness::Readiness;
pub(crate) use stall_watch::{StallCheck, StallWatch};
pub use stalled::{Stalled, StalledStream};
pub use wait_for::{Found, wait_for};
pub(crate) use writer::WeakWriter;
pub use writer::Writer;
