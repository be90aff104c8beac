//! What a journal tells of a command.

use std::fmt;
use std::time::Duration;

use procwright_process::Exit;

/// What a journal tells of a command that an earlier map has started.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Past {
    /// Seconds since 1970 at its start.
    pub started_at: f64,
    /// How it ended; none if the journal does not tell.
    pub end: Option<PastEnd>,
}

/// How a command of an earlier map ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PastEnd {
    /// True if it ended by itself, with exit code 0.
    pub success: bool,
    /// True if it was stopped, or kept from starting, by the end of its map: a cancel, the failure
    /// of others, or the deadline. A later map runs it again.
    pub stopped: bool,
    /// Time from its start to its end.
    pub duration: Duration,
    /// How its program ended; none if it could not be started. Of one that was stopped this says
    /// how that ended it, and `words` why it was stopped.
    pub status: Option<Exit>,
    /// What became of it, in words: `exited with code 1`.
    pub words: String,
}

impl Past {
    /// How its program ended; none if the journal does not tell, or if it could not be started.
    pub fn status(&self) -> Option<Exit> {
        self.end.as_ref().and_then(|end| end.status)
    }

    /// True if the end of its map has stopped it.
    pub fn was_stopped(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.stopped)
    }

    /// True if it is known to have succeeded.
    pub fn success(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.success)
    }
}

/// In words that follow the command: `exited with code 1`.
impl fmt::Display for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.end {
            Some(end) => &end.words,
            None => "was started, and its end is not known",
        })
    }
}
