//! What becomes of the commands: shown, counted, and what is said of it at the end.

use std::io;
use std::sync::Arc;

use procwright::map::{Ended, Error, Outcome, Progress, Running, StoppedBy};
use procwright::{Collected, Reason, StdStream};

use super::screen::Screen;
use crate::message;

/// How many failures the report names; the others are counted.
const MOST_NAMED: usize = 1000;

/// What became of a map.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) progress: Progress,
    pub(super) stopped_by: Option<StoppedBy>,
    pub(super) error: Option<Error>,
    pub(super) failures: Vec<Failed>,
}

/// A command that has not done what it should.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) index: u64,
    pub(super) argv: Vec<std::ffi::OsString>,
    pub(super) words: String,
}

/// Takes the results of a map until its end. Shows captured outputs, of failures alone if
/// `is_quiet`.
pub(super) fn take(mut running: Running, screen: &Arc<Screen>, is_quiet: bool) -> Tally {
    let mut tally = Tally::default();
    for ended in &mut running {
        match ended {
            Ok(ended) => tally.note(&ended, screen, is_quiet),
            Err(error) => tally.error = Some(error),
        }
    }
    tally.progress = running.progress();
    tally.stopped_by = running.stopped_by();
    tally
}

impl Tally {
    fn note(&mut self, ended: &Ended, screen: &Screen, is_quiet: bool) {
        let success = ended.success();
        if let Outcome::Ran(collected) = &ended.outcome
            && !(is_quiet && success)
        {
            // Nobody reads: the screen has told of it, and the map is being stopped.
            let _ = show(collected, screen);
        }
        if success {
            return;
        }
        let words = ended.summary();
        if !was_stopped_by_us(ended) {
            message::post(&words);
        }
        if self.failures.len() < MOST_NAMED {
            self.failures.push(Failed {
                index: ended.index,
                argv: ended.spec.argv.clone(),
                words,
            });
        }
    }
}

/// Returns whether the end of the map was that of the command: that is said once, for all.
fn was_stopped_by_us(ended: &Ended) -> bool {
    match &ended.outcome {
        Outcome::Ran(collected) => {
            collected.failure.is_none() && collected.report.reason == Reason::Cancelled
        }
        Outcome::NotStarted(error) => matches!(error, procwright::Error::Cancelled { .. }),
        _ => false,
    }
}

/// Shows what was captured, in the order of reading where both streams go to one place.
fn show(collected: &Collected<Vec<u8>>, screen: &Screen) -> io::Result<()> {
    let [out, err] =
        [&collected.stdout, &collected.stderr].map(|bytes| bytes.as_deref().unwrap_or_default());
    let Some(order) = &collected.merged else {
        for (stream, bytes) in StdStream::BOTH.into_iter().zip([out, err]) {
            if !bytes.is_empty() {
                screen.write(stream, bytes)?;
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
        screen.write(segment.stream, bytes)?;
    }
    Ok(())
}
