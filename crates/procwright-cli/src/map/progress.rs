//! The text of the line of progress.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use procwright::map::{Progress, Remote};

use super::total::Total;
use crate::progress::brief;

/// What the line says at this moment.
pub(super) fn line(remote: &Remote, total: &Total, started: Instant) -> String {
    let progress = remote.progress();
    let known = match progress.all_taken {
        true => Some(progress.taken),
        // A file may have got longer since it was counted.
        false => total.known().filter(|total| *total >= progress.taken),
    };
    let left = known.and_then(|total| left(&progress, total, remote.parallel() as u64));
    text(&progress, known, left, started.elapsed())
}

fn text(
    progress: &Progress,
    total: Option<u64>,
    left: Option<Duration>,
    elapsed: Duration,
) -> String {
    let ended = progress.taken - progress.running;
    let mut line = match total {
        Some(total) => format!("{ended} of {total} done"),
        None => format!("{ended} done"),
    };
    for (count, word) in [
        (progress.running, "running"),
        (progress.failed + progress.failed_before, "failed"),
        (progress.stopped, "stopped"),
        (progress.unknown, "unknown"),
    ] {
        if count > 0 {
            let _ = write!(line, ", {count} {word}");
        }
    }
    let _ = write!(line, ", {}", brief(elapsed));
    if let Some(left) = left {
        // Rounded up: there is something left.
        let left = Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0));
        let _ = write!(line, ", {} left", brief(left));
    }
    line
}

/// How long the rest takes if each command takes as long as those did on the average that were run
/// and have ended; none before the first has, and where those that run have taken as long and are
/// the last.
fn left(progress: &Progress, total: u64, parallel: u64) -> Option<Duration> {
    let ended = progress.succeeded + progress.failed + progress.stopped;
    if ended == 0 {
        return None;
    }
    let commands = total.checked_sub(progress.taken - progress.running)?;
    // Of commands that are counted floats are exact enough, and never overflow.
    #[allow(clippy::cast_precision_loss)]
    let (ended, running, commands, places) = (
        ended as f64,
        progress.running as f64,
        commands as f64,
        commands.min(parallel).max(1) as f64,
    );
    let mean = progress.ran_for.as_secs_f64() / ended;
    let over = progress.running_for.as_secs_f64().min(mean * running);
    let left = (mean * commands - over) / places;
    let left = Duration::try_from_secs_f64(left).ok()?;
    (left >= Duration::from_millis(1)).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(taken: u64, running: u64, ran_for: u64, running_for: u64) -> Progress {
        let mut progress = Progress::default();
        progress.taken = taken;
        progress.running = running;
        progress.succeeded = taken - running;
        progress.ran_for = Duration::from_secs(ran_for);
        progress.running_for = Duration::from_secs(running_for);
        progress
    }

    #[test]
    fn what_is_left_is_the_rest_by_the_mean() {
        let left = |progress: &Progress, total, parallel| {
            left(progress, total, parallel).map(|left| left.as_secs())
        };
        // One after another: 2 of 10 s each are left, of which one has run for 4 s.
        assert_eq!(left(&progress(4, 1, 30, 4), 5, 1), Some(16));
        // Four at a time: 16 of 10 s, and four that have half of it behind them.
        assert_eq!(left(&progress(24, 4, 200, 20), 40, 4), Some(45));
        // No more than are left share the rest.
        assert_eq!(left(&progress(10, 1, 90, 2), 10, 8), Some(8));
        // Longer than the mean is as long as the mean.
        assert_eq!(left(&progress(2, 1, 10, 90), 3, 1), Some(10));
    }

    #[test]
    fn nothing_is_guessed() {
        assert_eq!(left(&progress(2, 2, 0, 8), 5, 2), None);
        assert_eq!(left(&progress(2, 1, 10, 10), 2, 1), None);
        assert_eq!(left(&progress(5, 0, 50, 0), 5, 1), None);
        // More were taken than were counted.
        assert_eq!(left(&progress(5, 0, 50, 0), 4, 1), None);
        // Those that an earlier map has run say nothing of how long one takes.
        let mut before = progress(3, 1, 0, 5);
        (before.succeeded, before.succeeded_before) = (0, 2);
        assert_eq!(left(&before, 9, 1), None);
    }

    #[test]
    fn the_line() {
        let secs = Duration::from_secs;
        let mut now = progress(5, 2, 30, 4);
        assert_eq!(text(&now, None, None, secs(12)), "3 done, 2 running, 12s");
        (now.succeeded, now.failed) = (2, 1);
        assert_eq!(
            text(&now, Some(8), Some(Duration::from_millis(61_200)), secs(12)),
            "3 of 8 done, 2 running, 1 failed, 12s, 1m 2s left"
        );
    }
}
