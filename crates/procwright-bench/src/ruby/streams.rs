//! A reader who is slower than the child, and one who reads lines as fast as they come.

use std::time::Duration;

use crate::report::Report;
use crate::round::{self, Effort, Entry, Rounds};
use crate::streams::{Subject, entries};
use crate::suite::{Notes, ratios, rows, words};
use crate::tools::Tools;

const ALONE: &str = "child-alone";

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

/// A line of 40 kB every 50 ms, and 250 ms for each: what that does to the child. All at
/// the same time, for hardly anybody does anything.
pub(super) fn slow(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    let (count, rounds): (u64, usize) = match effort {
        Effort::Quick => (20, 1),
        Effort::Rounds(n) => (60, n.min(5)),
    };
    let (size, step_us, pause_ms) = (40_000, 50_000, 250);
    let mut entries = entries(tools, &SLOW);
    for entry in &mut entries {
        let (child, note) = (tools.built("ticker"), notes.of(&entry.name));
        let (child, note) = (child.display(), note.display());
        let args = words([&pause_ms, &child, &note, &count, &size, &step_us]);
        entry.argv.extend(args.into_iter().map(Into::into));
    }
    let mut outcome = round::together(tools, &entries, &[], rounds);
    outcome.require("lines", count);
    outcome.require("bytes", count * size);
    let case = format!("{count} lines of 40 kB, one every 50 ms, 250 ms for each");
    let figures = [
        ("child_s", "child's time", "s", 1.0),
        ("held_s", "held up", "s", 1.0),
    ];
    rows(report, &case, &entries, &outcome, &figures);
    for Entry { name, .. } in entries.iter().filter(|entry| entry.name != ALONE) {
        let pairs = outcome.ratios(name, ALONE, "child_s");
        report.ratio(&case, "child's time", name, ALONE, &pairs);
    }
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
