//! A reader who is slower than the child, and one who reads lines as fast as they come.

use std::time::Duration;

use crate::report::Report;
use crate::round::{self, Effort, Rounds};
use crate::streams::slow::{ALONE, held_up};
use crate::streams::{Subject, entries};
use crate::suite::{Notes, ratios, rows, words};
use crate::tools::Tools;

const SLOW: [Subject; 4] = [
    (ALONE, "bench-alone", &[]),
    ("procwright-ruby-spill", "slow_popen3.rb", &["spill"]),
    ("procwright-ruby-bare", "slow_popen3.rb", &["block"]),
    ("ruby-popen3", "slow_popen3.rb", &["stdlib"]),
];

const LINES: [Subject; 4] = [
    ("floor-read", "read", &["lines"]),
    ("procwright-ruby-spill", "lines_popen3.rb", &["spill"]),
    ("procwright-ruby-bare", "lines_popen3.rb", &["block"]),
    ("ruby-popen3", "lines_popen3.rb", &["stdlib"]),
];

const OURS: [&str; 2] = ["procwright-ruby-spill", "procwright-ruby-bare"];

/// What it does to the child that its reader is slow.
pub(super) fn slow(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    held_up(tools, effort, notes, report, &SLOW, &[]);
}

/// Lines of 100 bytes, buffered as the C library does it.
pub(super) fn lines(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let count: u64 = if effort.is_quick() {
        200_000
    } else {
        2_000_000
    };
    let entries = entries(tools, &LINES);
    let child = tools.built("lines");
    let args = words([&child.display(), &count, &4_000]);
    let expect = [("bytes", 100 * count), ("lines", count)];
    let rounds = effort.rounds(Rounds {
        least: 2,
        most: 5,
        budget: Duration::from_secs(5),
    });
    let outcome = round::go(tools, &entries, &args, &expect, rounds);
    let case = format!("{count} lines of 100 bytes, by each_line");
    let each = count as f64 / 1e6;
    rows(
        report,
        &case,
        &entries,
        &outcome,
        &[("seconds", "time", "µs a line", each)],
    );
    let figure = ["seconds", "time"];
    ratios(report, &case, &["ruby-popen3"], &OURS, &outcome, figure);
}
