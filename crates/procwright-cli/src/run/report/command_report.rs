//! Facts that the command reports beside the library.

use std::time::Duration;

use procwright::Holder;

use crate::run::input_wanted::Asked;
use crate::run::output::LogFigures;

/// Facts beside the [`Report`](procwright::Report) of the last attempt.
#[derive(Debug)]
pub(crate) struct CommandReport {
    /// Attempts that were made.
    pub(crate) attempts: u64,
    /// Time from the first start to the last end, with the pauses between.
    pub(crate) total: Duration,
    /// Signal to this command for which the program was stopped.
    pub(crate) signal: Option<i32>,
    /// The latest wait for input that was told.
    pub(crate) asked: Option<Asked>,
    /// True if the program was stopped for that.
    pub(crate) stopped_for_input: bool,
    pub(crate) log: Option<LogFigures>,
    /// Processes that go on in the background; none where that cannot be known.
    pub(crate) left: Option<Vec<Holder>>,
}
