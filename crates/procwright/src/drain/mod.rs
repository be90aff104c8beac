//! The way from a pipe into memory: one state machine that knows no thread and
//! never blocks on its target.
//!
//! [`Drain`] moves bytes out of one output pipe, [`Feed`] moves bytes into the
//! program's stdin. Neither ever waits: a step that cannot go on says what it
//! needs, and a driver waits for that. The [`Inline`] driver does so on the
//! caller's thread, [`Pump`] on one thread for all streams that are handed out.

mod blocked_time;
mod ceiling;
mod copies;
mod feed;
mod flow;
mod flow_watch;
mod inline;
mod kept;
mod keyboard_relay;
mod last_words;
mod merge;
mod meter;
mod output;
mod pipe_budget;
mod pump;
mod room;
mod saturation;
mod scratch;
mod second_thread;
mod segment;
mod store;
mod terminal_input;

pub(crate) use blocked_time::BlockedTime;
pub(crate) use ceiling::{Ceiling, Excess};
pub(crate) use copies::{Copies, OutputChunk};
pub(crate) use feed::{Feed, FeedSource};
pub use flow::Flow;
pub(crate) use flow_watch::{FlowTeller, FlowWatch, News};
pub(crate) use inline::{Inline, InlineTurn, Moved, PollOwner, WATCH};
pub(crate) use keyboard_relay::KeyboardRelay;
pub(crate) use last_words::LastWords;
pub(crate) use merge::{MergeInput, RecordHeader, Tally};
pub(crate) use meter::Gauge;
pub(crate) use output::Drain;
pub(crate) use pipe_budget::{PipeMemoryGrant, VOLUME_CAPACITY};
pub(crate) use pump::{Pump, PumpedStream};
pub use segment::Segment;
pub(crate) use store::Store;
pub(crate) use terminal_input::TerminalInput;
