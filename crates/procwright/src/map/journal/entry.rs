//! What the end of a command leaves in the journals.

use std::ffi::OsString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::line::{End, Nth};
use crate::map::ended::{Outcome, without_hint};
use crate::map::past::PastEnd;
use crate::run::Reason;
use crate::spool::Memory;

/// A command that was written down as started.
pub(in crate::map) struct Entry {
    pub(super) nth: Nth,
    pub(super) index: u64,
    pub(super) argv: Vec<OsString>,
    pub(super) started_at: f64,
}

/// The end of a command, as the journals have it.
pub(super) struct NotedEnd {
    pub(super) past: PastEnd,
    reason: Option<Reason>,
    pub(super) stdout_bytes: Option<u64>,
    pub(super) stderr_bytes: Option<u64>,
}

impl NotedEnd {
    pub(super) fn of<M: Memory>(outcome: &Outcome<M>, was_stopped: bool) -> Option<NotedEnd> {
        match outcome {
            Outcome::Ran(collected) => {
                let report = &collected.report;
                let success = collected.failure.is_none() && report.success();
                let words = match report.reason {
                    Reason::Finished => report.outcome(),
                    _ => format!("{}; {}", report.outcome(), report.status),
                };
                Some(NotedEnd {
                    past: PastEnd {
                        success,
                        stopped: was_stopped,
                        duration: report.duration,
                        status: Some(report.status),
                        words,
                    },
                    reason: Some(report.reason),
                    stdout_bytes: report.stdout_info.as_ref().map(|info| info.bytes),
                    stderr_bytes: report.stderr_info.as_ref().map(|info| info.bytes),
                })
            }
            Outcome::NotStarted(error) => Some(NotedEnd {
                past: PastEnd {
                    success: false,
                    stopped: was_stopped,
                    duration: Duration::ZERO,
                    status: None,
                    words: without_hint(format!("was not started: {error}")),
                },
                reason: None,
                stdout_bytes: None,
                stderr_bytes: None,
            }),
            Outcome::Before(_) | Outcome::Unknown(_) | Outcome::Taken => None,
        }
    }

    /// Whether a limit of its own has stopped it.
    pub(super) fn is_by_limit(&self) -> bool {
        use Reason::{IdleTimeout, OutputLimit, Timeout};
        matches!(self.reason, Some(Timeout | IdleTimeout | OutputLimit))
    }

    pub(super) fn line(&self, entry: &Entry) -> Value {
        let end = End {
            past: &self.past,
            at: now(),
            reason: self.reason.map(Reason::name),
            stdout_bytes: self.stdout_bytes,
            stderr_bytes: self.stderr_bytes,
        };
        super::line::ended(entry.nth, entry.index, &end)
    }
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
