//! A reader who is slower than the child, and many children at once.

use super::{Notes, Subject, entries, rows, words};
use crate::report::Report;
use crate::round::{self, Effort, Entry, Rounds};
use crate::suite::Figure;
use crate::tools::Tools;
use std::time::Duration;

/// The child by itself.
pub(crate) const ALONE: &str = "child-alone";

/// `lines PAUSE_MS TICKER NOTE COUNT SIZE STEP_US`
const SLOW: [Subject; 7] = [
    (ALONE, "bench-alone", &[]),
    (
        "procwright-rust-spill",
        "bench-rust-slow",
        &["spill", "lines"],
    ),
    (
        "procwright-rust-block",
        "bench-rust-slow",
        &["block", "lines"],
    ),
    (
        "procwright-rust-bare",
        "bench-rust-slow",
        &["bare", "lines"],
    ),
    (
        "procwright-python-spill",
        "slow_procwright.py",
        &["spill", "lines"],
    ),
    (
        "procwright-python-bare",
        "slow_procwright.py",
        &["bare", "lines"],
    ),
    ("subprocess", "slow_python.py", &["subprocess", "lines"]),
];

/// `many N IDLE_MS TICKER - COUNT SIZE STEP_US 2`
const MANY: [Subject; 3] = [
    ("procwright-rust", "bench-rust-slow", &["spill", "many"]),
    (
        "procwright-python",
        "slow_procwright.py",
        &["spill", "many"],
    ),
    ("asyncio", "slow_python.py", &["asyncio", "many"]),
];

/// How long the child took and was held up, and what else a reader knows of it.
pub(super) fn reader(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    let told = [
        ("blocked_s", "blocked, as told", "s", 1.0),
        ("paused_s", "pauses of the reader", "s", 1.0),
    ];
    held_up(tools, effort, notes, report, &SLOW, &told);
}

/// A line of 40 kB every 50 ms, and 250 ms for each: what that does to the child.
/// All at the same time, for hardly anybody does anything.
pub(crate) fn held_up(
    tools: &Tools,
    effort: Effort,
    notes: &Notes,
    report: &mut Report,
    subjects: &[Subject],
    told: &[Figure<'_>],
) {
    let (count, rounds): (u64, usize) = match effort {
        Effort::Quick => (20, 1),
        Effort::Rounds(n) => (60, n.min(5)),
    };
    let (size, step_us, pause_ms) = (40_000, 50_000, 250);
    let mut entries = entries(tools, subjects);
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
    let child = [
        ("child_s", "child's time", "s", 1.0),
        ("held_s", "held up", "s", 1.0),
    ];
    let figures = [&child[..], told].concat();
    rows(report, &case, &entries, &outcome, &figures);
    for Entry { name, .. } in entries.iter().filter(|entry| entry.name != ALONE) {
        let pairs = outcome.ratios(name, ALONE, "child_s");
        report.ratio(&case, "child's time", name, ALONE, &pairs);
    }
}

/// Both streams of many children flow, and then none does.
pub(super) fn many(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let children: u64 = if effort.is_quick() { 300 } else { 1_000 };
    let (count, size, step_us, idle_ms) = (20, 4_000, 100_000, 2_000);
    let entries = entries(tools, &MANY);
    let child = tools.built("ticker");
    let args = words([
        &children,
        &idle_ms,
        &child.display(),
        &"-",
        &count,
        &size,
        &step_us,
        &2,
    ]);
    let rounds = effort.rounds(Rounds {
        least: 1,
        most: 1,
        budget: Duration::ZERO,
    });
    let expect = [("bytes", children * 2 * count * size)];
    let outcome = round::go(tools, &entries, &args, &expect, rounds);
    let case = format!("{children} children, both streams of each flow, then none for 2 s");
    let figures = [
        ("threads", "threads besides the first", "count", 1.0),
        ("wakes_per_mb", "wake-ups of these", "a MB", 1.0),
        ("idle_wakes", "… while idle", "count", 1.0),
        ("main_wakes_per_mb", "wake-ups of the first", "a MB", 1.0),
        ("cpu_ms_per_mb", "processor", "ms a MB", 1.0),
        ("spawn_s", "start of all", "s", 1.0),
        ("seconds", "until all was here", "s", 1.0),
    ];
    rows(report, &case, &entries, &outcome, &figures);
}
