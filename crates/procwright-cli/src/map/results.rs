//! What becomes of the commands: shown, counted, and what is said of it at the end.

use std::io;
use std::sync::Arc;

use procwright::map::{Ended, Error, Outcome, Progress, Running, StoppedBy};
use procwright::{Collected, StdStream};
use serde_json::{Value, json};

use super::live::LiveTap;
use super::screen::Screen;
use super::tags::Tags;
use crate::message;

/// How many failures the report names; the others are counted.
const MOST_NAMED: usize = 1000;

/// How many commands the report lists; the others are counted.
const MOST_LISTED: usize = 100_000;

/// How results are shown and what is kept of them.
#[derive(Debug)]
pub(super) struct Showing {
    pub(super) screen: Arc<Screen>,
    /// Tags of the lines of captured outputs.
    pub(super) tags: Option<Arc<Tags>>,
    /// Outputs of failures alone.
    pub(super) is_quiet: bool,
    /// Whether each command is to be listed in the report.
    pub(super) keeps_runs: bool,
}

/// What became of a map.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) progress: Progress,
    pub(super) stopped_by: Option<StoppedBy>,
    pub(super) error: Option<Error>,
    pub(super) failures: Vec<Failed>,
    /// How many of those that have not done what they should were stopped by the end of the map.
    pub(super) stopped: u64,
    /// What the report lists.
    pub(super) runs: Vec<Value>,
}

/// A command that has not done what it should.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) index: u64,
    pub(super) argv: Vec<std::ffi::OsString>,
    /// What became of it, in words, and these behind the command.
    pub(super) outcome: String,
    pub(super) summary: String,
}

/// Takes the results of a map until its end, and shows captured outputs.
pub(super) fn take(mut running: Running, showing: &Showing) -> Tally {
    let mut tally = Tally::default();
    for ended in &mut running {
        match ended {
            Ok(ended) => tally.note(&ended, showing),
            Err(error) => tally.error = Some(error),
        }
    }
    tally.progress = running.progress();
    tally.stopped_by = running.stopped_by();
    tally
}

impl Tally {
    fn note(&mut self, ended: &Ended, showing: &Showing) {
        let success = ended.success();
        // Of a command that was not run its tag is left.
        let tag = showing
            .tags
            .as_ref()
            .and_then(|tags| tags.take(ended.index));
        if let Outcome::Ran(collected) = &ended.outcome
            && !(showing.is_quiet && success)
        {
            // Nobody reads: the screen has told of it, and the map is being stopped.
            let _ = match tag {
                Some(tag) => {
                    let tap = LiveTap::new(Arc::clone(&showing.screen), Some(&tag));
                    show_lines(collected, tap)
                }
                None => show(collected, |stream, bytes| {
                    showing.screen.write(stream, bytes)
                }),
            };
        }
        if showing.keeps_runs && self.runs.len() < MOST_LISTED {
            self.runs.push(listed(ended));
        }
        if success {
            return;
        }
        let summary = ended.summary();
        if was_stopped_by_us(ended, &showing.screen) {
            self.stopped += 1;
        } else {
            match &ended.outcome {
                // With what to do about it.
                Outcome::NotStarted(error) => message::post(error),
                Outcome::Ran(collected) => match collected.report.why() {
                    Some(why) => message::post(format_args!("{summary}\n  why: {why}")),
                    None => message::post(&summary),
                },
                _ => message::post(&summary),
            }
        }
        if self.failures.len() < MOST_NAMED {
            self.failures.push(Failed {
                index: ended.index,
                argv: ended.spec.argv.clone(),
                outcome: outcome_of(ended),
                summary,
            });
        }
    }
}

/// Returns whether the end of the map was that of the command: that is said once, for all. Where
/// nobody reads, a command whose lines could not be shown has failed no more than the others:
///
/// 1. its lines are refused, its stdout is closed, and the map begins to end;
/// 2. its next write ends it by SIGPIPE, before the map's stop reaches it.
fn was_stopped_by_us(ended: &Ended, screen: &Screen) -> bool {
    let could_not_be_shown = match &ended.outcome {
        Outcome::Ran(collected) => {
            let stdout = collected.report.stdout_info.as_ref();
            let was_closed = stdout.is_some_and(|stdout| !stdout.complete);
            (collected.failure.is_some() || was_closed) && screen.is_broken()
        }
        _ => false,
    };
    ended.was_stopped() || could_not_be_shown
}

/// What the report says of a command; `docs/reference/command.md` describes it.
fn listed(ended: &Ended) -> Value {
    let (report, past) = match &ended.outcome {
        Outcome::Ran(collected) => (Some(&collected.report), None),
        Outcome::Before(past) | Outcome::Unknown(past) => (None, Some(past)),
        _ => (None, None),
    };
    let before = past.and_then(|past| past.end.as_ref());
    let duration = report
        .map(|report| report.duration)
        .or(before.map(|end| end.duration));
    let argv = ended.spec.argv.iter().map(procwright::text_to_json);
    json!({
        "index": ended.index,
        "argv": argv.collect::<Vec<_>>(),
        "success": ended.success(),
        "before": past.is_some(),
        "status": ended.status().map(procwright::process::Exit::to_json),
        "reason": report.map(|report| report.reason.name()),
        "outcome": outcome_of(ended),
        "duration_s": duration.map(|duration| duration.as_secs_f64()),
    })
}

/// What became of a command, in words, without the command itself where it was run.
fn outcome_of(ended: &Ended) -> String {
    match &ended.outcome {
        Outcome::Ran(collected) => collected.report.outcome(),
        Outcome::Before(past) | Outcome::Unknown(past) => past.to_string(),
        _ => ended.summary(),
    }
}

fn show_lines(collected: &Collected<Vec<u8>>, mut tap: LiveTap) -> io::Result<()> {
    show(collected, |stream, bytes| tap.take(stream, bytes))?;
    tap.finish()
}

/// Shows what was captured, in the order of reading where both streams go to one place.
fn show(
    collected: &Collected<Vec<u8>>,
    mut write: impl FnMut(StdStream, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let [out, err] =
        [&collected.stdout, &collected.stderr].map(|bytes| bytes.as_deref().unwrap_or_default());
    let Some(order) = &collected.merged else {
        for (stream, bytes) in StdStream::BOTH.into_iter().zip([out, err]) {
            if !bytes.is_empty() {
                write(stream, bytes)?;
            }
        }
        return Ok(());
    };
    let (mut out, mut err) = (out, err);
    for segment in order {
        let rest = match segment.stream {
            StdStream::Stdout => &mut out,
            StdStream::Stderr => &mut err,
        };
        let length = usize::try_from(segment.bytes).map_or(rest.len(), |n| n.min(rest.len()));
        let (bytes, after) = rest.split_at(length);
        *rest = after;
        write(segment.stream, bytes)?;
    }
    Ok(())
}
