//! How fast output comes through.

use std::time::Duration;

use super::{
    BARE, RUN, RUN_LOG, RUN_PTY, RUN_PTY_LOG, RUN_RELAY, SCRIPT, SCRIPT_FILE, Subject, TEE,
    TIMEOUT, entries, sides,
};
use crate::report::Report;
use crate::round::{self, Effort, Rounds};
use crate::suite::{Notes, ratios, rows, words};
use crate::tools::Tools;

const PIPED: [Subject; 6] = [BARE, TIMEOUT, TEE, RUN, RUN_RELAY, RUN_LOG];
const TERMINALS: [Subject; 4] = [SCRIPT, SCRIPT_FILE, RUN_PTY, RUN_PTY_LOG];

fn rounds(effort: Effort) -> Rounds {
    effort.rounds(Rounds {
        least: 2,
        most: 2,
        budget: Duration::ZERO,
    })
}

/// With /dev/null as stdout.
pub(super) fn to_null(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    flood(tools, effort, notes, report, "null", "to /dev/null");
}

/// With a reader behind a pipe.
pub(super) fn through_a_pipe(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    flood(tools, effort, notes, report, "pipe", "through a pipe");
}

fn flood(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report, to: &str, title: &str) {
    let mib: u64 = if effort.is_quick() { 128 } else { 1024 };
    let bytes = mib << 20;
    let entries = entries(tools, notes, &PIPED);
    let (ours, theirs) = sides(&PIPED);
    for kib in [4, 64] {
        let child = tools.built("flood");
        let args = words([&"--", &to, &child.display(), &1, &bytes, &(kib << 10)]);
        // What went to /dev/null nobody has counted.
        let seen = if to == "pipe" { bytes } else { 0 };
        let outcome = round::go(tools, &entries, &args, &[("bytes", seen)], rounds(effort));
        let case = format!("{mib} MiB in writes of {kib} KiB, {title}");
        rows(
            report,
            &case,
            &entries,
            &outcome,
            &[("seconds", "time", "s", 1.0)],
        );
        ratios(report, &case, &ours, &theirs, &outcome, ["seconds", "time"]);
    }
}

/// Lines from a program that writes to a terminal, with a reader behind a pipe.
pub(super) fn on_a_terminal(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    let count: u64 = if effort.is_quick() {
        200_000
    } else {
        2_000_000
    };
    let entries = entries(tools, notes, &TERMINALS);
    let (ours, theirs) = sides(&TERMINALS);
    for write in [4_000, 100] {
        let child = tools.built("lines");
        let args = words([&"--", &"pipe", &child.display(), &count, &write]);
        // A terminal ends a line with two characters.
        let expect = [("bytes", count * 101)];
        let outcome = round::go(tools, &entries, &args, &expect, rounds(effort));
        let case = format!("{count} lines of 100 bytes in writes of {write}, on a terminal");
        rows(
            report,
            &case,
            &entries,
            &outcome,
            &[("seconds", "time", "s", 1.0)],
        );
        ratios(report, &case, &ours, &theirs, &outcome, ["seconds", "time"]);
    }
}
