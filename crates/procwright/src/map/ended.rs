//! What became of one command.

use std::sync::Arc;

use super::past::Past;
use crate::quote::quote;
use crate::run::{self, Collected, Failure, Reason};
use crate::spec::Spec;
use crate::spool::Memory;
use procwright_process::Exit;

/// One command of a map, and what became of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended<M = Vec<u8>> {
    /// Place in the input, from 0 on.
    pub index: u64,
    /// The command, as the input had it.
    pub spec: Arc<Spec>,
    /// What became of it.
    pub outcome: Outcome<M>,
    /// Place of the command whose failure has ended the map
    /// ([`Map::stop_after_failures`](super::Map::stop_after_failures)): of that one itself, and of
    /// those that were stopped for it; none of others.
    pub cause: Option<u64>,
}

/// What became of one command of a map.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome<M = Vec<u8>> {
    /// It was run, to its end or to its stop, which the report's reason tells.
    Ran(Box<Collected<M>>),
    /// It could not be started, or the map was stopped in that moment.
    NotStarted(run::Error),
    /// The journal tells of its end: it was not run again.
    Before(Past),
    /// The journal tells that it was started, and not how it ended, since the process that ran it
    /// was killed or the machine has failed. It was not run again: whether that may be is for a
    /// person to say ([`Journal::rerun_unknown`](super::Journal::rerun_unknown)).
    Unknown(Past),
    /// The failure that has ended the map, which was taken before its turn
    /// ([`Running::take_cause`](super::Running::take_cause)).
    Taken,
}

impl<M: Memory> Ended<M> {
    /// True if the command has done what it should: now or in an earlier map, by itself, and
    /// with exit code 0.
    pub fn success(&self) -> bool {
        match &self.outcome {
            Outcome::Ran(collected) => collected.failure.is_none() && collected.report.success(),
            Outcome::NotStarted(_) | Outcome::Unknown(_) | Outcome::Taken => false,
            Outcome::Before(past) => past.success(),
        }
    }

    /// True if it was stopped, or kept from starting, by the end of the map: a cancel, or the
    /// failure of others. Nothing is said by that of the command itself.
    pub fn was_stopped(&self) -> bool {
        match &self.outcome {
            Outcome::Ran(collected) => {
                collected.failure.is_none() && collected.report.reason == Reason::Cancelled
            }
            Outcome::NotStarted(error) => matches!(error, run::Error::Cancelled { .. }),
            Outcome::Before(_) | Outcome::Unknown(_) | Outcome::Taken => false,
        }
    }

    /// How its program ended, now or in an earlier map; none if it could not be started, and where
    /// the journal does not tell.
    pub fn status(&self) -> Option<Exit> {
        match &self.outcome {
            Outcome::Ran(collected) => Some(collected.report.status),
            Outcome::Before(past) => past.status(),
            Outcome::NotStarted(_) | Outcome::Unknown(_) | Outcome::Taken => None,
        }
    }

    /// The command as a shell takes it.
    pub fn command(&self) -> String {
        quote(&self.spec.argv)
    }

    /// What became of it, in a line: `gzip a.log exited with code 1`. What to do about a command
    /// that was not started the error says.
    pub fn summary(&self) -> String {
        match &self.outcome {
            Outcome::Ran(collected) => match &collected.failure {
                None => collected.report.summary(),
                Some(Failure::Foreign(what, error)) => {
                    format!("{what} of {} failed: {error}", self.command())
                }
                Some(Failure::Io(error)) => {
                    format!("reading the output of {} failed: {error}", self.command())
                }
            },
            Outcome::NotStarted(error) => without_hint(error.to_string()),
            Outcome::Before(past) => format!("{} {past}, before", self.command()),
            Outcome::Unknown(past) => format!("{} {past}", self.command()),
            Outcome::Taken => format!("{} has failed, and was taken before", self.command()),
        }
    }
}

/// The words of an error without the line that says what to do.
pub(super) fn without_hint(mut words: String) -> String {
    if let Some(at) = words.find("\n  hint: ") {
        words.truncate(at);
    }
    words
}
