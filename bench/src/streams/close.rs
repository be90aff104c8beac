//! Closing a stream on which others are blocked.
//!
//! What a subject is asked for, behind its own words:
//! - `others N SAMPLES`: a reader is blocked on each of N pipes. One of ten of
//!   them, spread over all, is closed, its reader fails, and another takes its
//!   place: SAMPLES times, the ten in turn, at rest in between. The same ten, so
//!   that what is measured is how many others there are and not how cold the memory
//!   of one that was not touched for long.
//! - `waiters N SAMPLES`: N readers are blocked on one pipe, which is closed.
//! - `epipe SAMPLES CHILD NOTE`: a reader is blocked on a child's output, which is
//!   closed; until the child has learned of it, see `floors/epipe.c`.
//!
//! It says how long each call to close took, `close_us`; until the last reader was
//! out, `last_us`; until the child knew, `epipe_us`. Every reader must have failed,
//! with the error that says so.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};

use super::{Notes, Subject, entries, rows, words};
use crate::report::Report;
use crate::round::{self, Effort, Entry, Outcome, Rounds};
use crate::tools::Tools;

const SUBJECTS: [Subject; 6] = [
    ("procwright-rust-bare", "bench-rust-close", &["bare"]),
    ("procwright-rust-spill", "bench-rust-close", &["spill"]),
    ("procwright-python", "close_procwright.py", &["spill"]),
    ("ruby-io", "close_io.rb", &[]),
    ("go-file", "close_go", &[]),
    ("java-pipe", "Close.class", &["Close"]),
];

const OURS: [&str; 3] = [
    "procwright-rust-bare",
    "procwright-rust-spill",
    "procwright-python",
];

const PEERS: [&str; 3] = ["ruby-io", "go-file", "java-pipe"];

/// As many as Python can have: its streams are children's, two each, and a child
/// takes seven descriptors.
const CHILDREN: u64 = 4_500;

fn rounds(effort: Effort, quick: usize) -> Rounds {
    effort.rounds(Rounds {
        least: quick,
        most: quick,
        budget: Duration::ZERO,
    })
}

/// How many pipes and threads a process can have here: both ends of a pipe, or one
/// and a wake-up.
pub(crate) fn room() -> u64 {
    let (_, files) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 1_024));
    (files.saturating_sub(500) / 2).min(9_000)
}

/// Each subject with each number of readers, as one contest: what is compared is
/// a subject with itself.
fn sized(tools: &Tools, case: &str, sizes: &[u64], samples: u64) -> Vec<Entry> {
    let mut all = Vec::new();
    for entry in entries(tools, &SUBJECTS) {
        for size in sizes {
            let mut argv = entry.argv.clone();
            let held = match case == "others" && *size > CHILDREN && entry.name == OURS[2] {
                true => CHILDREN,
                false => *size,
            };
            argv.extend([case, &held.to_string(), &samples.to_string()].map(PathBuf::from));
            let name = format!("{}/{size}", entry.name);
            all.push(Entry { name, argv });
        }
    }
    all
}

fn names() -> impl Iterator<Item = &'static str> {
    SUBJECTS.iter().map(|(name, ..)| *name)
}

/// Of a figure that is a list: its middle and its 99th percentile.
fn percentiles(report: &mut Report, case: &str, size: u64, outcome: &Outcome) {
    for (metric, share) in [("p50", 0.5), ("p99", 0.99)] {
        for name in names() {
            let figures = outcome.quantiles(&format!("{name}/{size}"), "close_us", share);
            report.row(case, name, metric, "µs", &figures);
        }
    }
    for ours in OURS {
        for peer in PEERS {
            let [over, under] = [ours, peer].map(|name| format!("{name}/{size}"));
            let pairs = outcome.ratios(&over, &under, "close_us");
            report.ratio(case, "p50", ours, peer, &pairs);
        }
    }
}

/// A line for each, whatever the size.
fn note_missing(report: &mut Report, outcome: Outcome) {
    for (name, reason) in outcome.missing {
        let short = name.split('/').next().unwrap_or(&name);
        let name = match outcome.lines.keys().any(|other| other.starts_with(short)) {
            // Others of its sizes were possible.
            true => name.as_str(),
            false => short,
        };
        report.missing.insert(name.to_owned(), reason);
    }
}

/// One of N that others are blocked on.
pub(super) fn others(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let samples = if effort.is_quick() { 100 } else { 500 };
    let sizes = [10, 1_000, room()];
    let entries = sized(tools, "others", &sizes, samples);
    let outcome = round::go(tools, &entries, &[], &[], rounds(effort, 1));
    for size in sizes {
        let case = format!("close one of {size}, each with a blocked reader");
        percentiles(report, &case, size, &outcome);
    }
    for name in names() {
        let [few, most] = [sizes[0], sizes[2]].map(|size| format!("{name}/{size}"));
        let pairs = outcome.ratios(&most, &few, "close_us");
        report.ratio(
            "close one of many, against one of ten",
            "p50",
            &most,
            &few,
            &pairs,
        );
    }
    if sizes[2] > CHILDREN {
        let why = format!("measured with {CHILDREN}: two streams a child, and its descriptors");
        report
            .missing
            .insert(format!("{}/{}", OURS[2], sizes[2]), why);
    }
    note_missing(report, outcome);
}

/// One that many are blocked on.
pub(super) fn waiters(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let samples = if effort.is_quick() { 2 } else { 10 };
    let size = if effort.is_quick() { 1_000 } else { room() };
    let entries = sized(tools, "waiters", &[size], samples);
    let outcome = round::go(tools, &entries, &[], &[], rounds(effort, 1));
    let case = format!("close one with {size} blocked readers");
    percentiles(report, &case, size, &outcome);
    for name in names() {
        let lasts = outcome.known(&format!("{name}/{size}"), "last_us");
        let ms: Vec<f64> = lasts.iter().map(|us| us / 1e3).collect();
        report.row(&case, name, "last reader out", "ms", &ms);
    }
    note_missing(report, outcome);
}

/// Until the child knows. Java's pipes are no child's.
pub(super) fn epipe(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    let samples = if effort.is_quick() { 20 } else { 100 };
    let subjects: Vec<Subject> = SUBJECTS
        .into_iter()
        .filter(|(name, ..)| *name != "java-pipe")
        .collect();
    let mut entries = entries(tools, &subjects);
    for entry in &mut entries {
        entry.argv.push("epipe".into());
    }
    let (child, note) = (tools.built("epipe"), notes.of("epipe"));
    let args = words([&samples, &child.display(), &note.display()]);
    let outcome = round::go(
        tools,
        &entries,
        &args,
        &[("count", samples)],
        rounds(effort, 1),
    );
    let case = "close under a blocked reader, until the child has EPIPE";
    for (metric, share) in [("p50", 0.5), ("p99", 0.99)] {
        for Entry { name, .. } in &entries {
            let figures = outcome.quantiles(name, "epipe_us", share);
            report.row(case, name, metric, "µs", &figures);
        }
    }
    rows(report, case, &[], &outcome, &[]);
}
