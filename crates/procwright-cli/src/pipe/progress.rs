//! `--progress`: a line on the terminal that says what passes between each two stages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use procwright::buffer::Figures;
use procwright::pipeline::StageMoment;
use procwright::{BoxError, Piece, Tap};

use crate::human::HumanBytes;
use crate::progress::{ProgressItem, ProgressLine, brief};

/// What has to wait in a buffer to be told of: more than one that counts holds.
const MUCH: u64 = 2 << 20;

/// The figures of the line.
#[derive(Debug)]
pub(super) struct PipeProgress {
    line: Arc<ProgressLine>,
    started: Instant,
    /// The time of the latest update, and what had passed by then, by the names of the places.
    latest: (Instant, Vec<(String, Passed)>),
}

/// What has passed at one place.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    bytes: u64,
    /// The time for which the stage before it has waited for room.
    refused: Duration,
    waiting: u64,
}

impl Passed {
    fn through(figures: Figures) -> Passed {
        Passed {
            bytes: figures.bytes_out,
            refused: figures.refused,
            waiting: figures.lag_bytes,
        }
    }
}

impl PipeProgress {
    pub(super) fn new(line: &Arc<ProgressLine>) -> PipeProgress {
        let now = Instant::now();
        PipeProgress {
            line: Arc::clone(line),
            started: now,
            latest: (now, Vec::new()),
        }
    }

    /// Draws the line with new figures. Never blocks, as the deadlines would wait as well.
    pub(super) fn update(&mut self, stages: &[StageMoment<'_>]) {
        let items = self.items(stages, Instant::now());
        self.line.update(items, None);
    }

    /// Items of the line, the most important first.
    fn items(&mut self, stages: &[StageMoment<'_>], now: Instant) -> Vec<ProgressItem> {
        let elapsed = now.saturating_duration_since(self.started);
        let mut items = vec![ProgressItem::new(brief(elapsed))];
        if stages.iter().any(|stage| stage.program.stopping) {
            items.push(ProgressItem::new("stopping"));
        }
        let (then, before) = std::mem::replace(&mut self.latest, (now, passed(stages)));
        let time = now.saturating_duration_since(then);
        for (name, passed) in &self.latest.1 {
            let same = before.iter().find(|(other, _)| other == name);
            let before = same.map(|(_, passed)| *passed).unwrap_or_default();
            items.push(item(name, before, *passed, time));
        }
        let errors = stages.iter().filter_map(|stage| stage.program.stderr);
        match errors.map(|flow| flow.bytes).sum() {
            0 => {}
            bytes => items.push(ProgressItem::new(format!("err {}", HumanBytes(bytes)))),
        }
        items
    }
}

/// What has passed at each place, under its name: between two stages that count from 1, and out of
/// the last.
fn passed(stages: &[StageMoment<'_>]) -> Vec<(String, Passed)> {
    let mut all = Vec::with_capacity(stages.len());
    // The one that a fan copies stands before the first program of that.
    let mut copied = 0;
    for (place, stage) in stages.iter().enumerate() {
        if let Some(figures) = stage.fan {
            all.push((format!("{copied}>{}", place + 1), Passed::through(figures)));
            continue;
        }
        copied = place + 1;
        if let Some(figures) = stage.elastic {
            let name = format!("{}>{}", place + 1, place + 2);
            all.push((name, Passed::through(figures)));
        }
    }
    let outputs = stages.iter().filter_map(|stage| stage.program.stdout);
    let bytes = outputs.map(|flow| flow.bytes);
    if let Some(bytes) = bytes.reduce(|one, other| one + other) {
        let out = Passed {
            bytes,
            ..Passed::default()
        };
        all.push(("out".to_owned(), out));
    }
    all
}

/// What has passed at a place since the latest update, `time` ago, and what in all.
fn item(name: &str, before: Passed, passed: Passed, time: Duration) -> ProgressItem {
    let moved = passed.bytes.saturating_sub(before.bytes) as f64;
    let rate = (moved / time.as_secs_f64().max(0.001)).round() as u64;
    let mut text = format!("{name} {}/s", HumanBytes(rate));
    if passed.waiting >= MUCH {
        text += &format!(" {} waiting", HumanBytes(passed.waiting));
    }
    if passed.refused.saturating_sub(before.refused) > time / 2 {
        text += " full";
    }
    ProgressItem::with_more(text, format!(" {}", HumanBytes(passed.bytes)))
}

/// Passes the outputs of a stage on to those of this command.
#[derive(Debug)]
pub(super) struct AroundLine(pub(super) Arc<ProgressLine>);

impl Tap for AroundLine {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        Ok(self.0.write_output(piece.stream, piece.bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_its_rate_and_what_waits_there() {
        let second = Duration::from_secs(1);
        let passed = |bytes, millis, waiting| Passed {
            bytes,
            refused: Duration::from_millis(millis),
            waiting,
        };
        let told = |before, now| format!("{:?}", item("1>2", before, now, second));
        let nothing = Passed::default();
        assert!(told(nothing, nothing).contains("\"1>2 0 bytes/s\""));
        let some = told(passed(1024, 900, 0), passed(3072, 1000, 4096));
        assert!(
            some.contains("\"1>2 2.0 KiB/s\"") && some.contains("\" 3.0 KiB\""),
            "{some}"
        );
        let held_up = told(passed(1024, 100, 0), passed(1024, 700, 3 << 30));
        assert!(
            held_up.contains("\"1>2 0 bytes/s 3.0 GiB waiting full\""),
            "{held_up}"
        );
    }
}
