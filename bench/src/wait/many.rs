//! Waiting for many strangers.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};

use super::{Slots, entries, latencies, rows};
use crate::report::Report;
use crate::round::{self, Effort, Outcome, Rounds};
use crate::tools::Tools;

/// Who can wait for many at once.
const SUBJECTS: [&str; 5] = [
    "floor-epoll",
    "procwright-rust-set",
    "procwright-python-wait",
    "procwright-wait",
    "psutil-wait-procs",
];

/// A thread for each process: only where there are no more than a few thousand.
const THREADS: &str = "floor-threads";

const FLOOR: &str = "floor-epoll";

fn with_threads() -> Vec<&'static str> {
    SUBJECTS.into_iter().chain([THREADS]).collect()
}

fn rounds(effort: Effort) -> Rounds {
    effort.rounds(Rounds {
        least: 1,
        most: 1,
        budget: Duration::ZERO,
    })
}

fn ratios(report: &mut Report, case: &str, names: &[&str], outcome: &Outcome, figure: [&str; 2]) {
    let [key, metric] = figure;
    for name in names.iter().filter(|name| **name != FLOOR) {
        let pairs = outcome.ratios(name, FLOOR, key);
        report.ratio(case, metric, name, FLOOR, &pairs);
    }
}

/// What it costs to have strangers watched for two seconds.
pub(super) fn strangers(tools: &Tools, effort: Effort, slots: &Slots, report: &mut Report) {
    let (count, seconds) = (1_200, 2);
    let entries = entries(tools, &with_threads());
    let args = slots.args(tools, "idle", &[count, seconds, 50]);
    let outcome = round::go(tools, &entries, &args, &[], rounds(effort));
    let case = format!("{count} strangers for {seconds} s");
    let figures = [("cpu_ms", "cpu", "ms"), ("switches", "switches", "count")];
    rows(report, &case, &entries, &outcome, &figures);
}

/// One exit after another among many.
pub(super) fn among(tools: &Tools, effort: Effort, slots: &Slots, report: &mut Report) {
    let (count, step_us) = (300, 20_000);
    let exits = if effort.is_quick() { 50 } else { 200 };
    let entries = entries(tools, &with_threads());
    let args = slots.args(tools, "among", &[count, exits, step_us]);
    let outcome = round::go(tools, &entries, &args, &[], rounds(effort));
    let case = format!("kill to return, one among {count}, {exits} exits a round");
    latencies(report, &case, &entries, &outcome, &[FLOOR]);
}

/// How many processes can be there and be watched: within the limit of
/// descriptors, to which subjects raise theirs, and with half of all numbers left
/// to others.
fn room() -> u64 {
    let (_, files) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 1_024));
    let numbers = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    let numbers = numbers.and_then(|text| text.trim().parse::<u64>().ok());
    (files.saturating_sub(100)).min(numbers.unwrap_or(32_768) / 2)
}

/// What it costs to begin to watch.
pub(super) fn setup(tools: &Tools, effort: Effort, slots: &Slots, report: &mut Report) {
    let count = room().min(if effort.is_quick() { 2_000 } else { 10_000 });
    let entries = entries(tools, &SUBJECTS);
    let args = slots.args(tools, "idle", &[count, 0, 0]);
    let outcome = round::go(tools, &entries, &args, &[], rounds(effort));
    let case = format!("set-up of {count} watches");
    let figures = [("setup_us", "set-up", "µs a process")];
    rows(report, &case, &entries, &outcome, &figures);
    ratios(report, &case, &SUBJECTS, &outcome, ["setup_us", "set-up"]);
}

/// All end at once.
pub(super) fn mass(tools: &Tools, effort: Effort, slots: &Slots, report: &mut Report) {
    let count = 2_000;
    let names = with_threads();
    let entries = entries(tools, &names);
    let args = slots.args(tools, "mass", &[count]);
    let outcome = round::go(tools, &entries, &args, &[], rounds(effort));
    let case = format!("{count} end at once");
    let figures = [
        ("exit_us", "exit", "µs a process"),
        ("cpu_us", "cpu", "µs a process"),
        ("switches", "switches", "count"),
        ("setup_us", "watch", "µs a process"),
    ];
    rows(report, &case, &entries, &outcome, &figures);
    ratios(report, &case, &names, &outcome, ["exit_us", "exit"]);
    ratios(report, &case, &names, &outcome, ["cpu_us", "cpu"]);
}

/// Whether being idle costs more, the more are watched.
pub(super) fn idle(tools: &Tools, effort: Effort, slots: &Slots, report: &mut Report) {
    for count in [10, 1_000, 5_000] {
        // The command can take no look: it is a process for each.
        let names = SUBJECTS
            .into_iter()
            .filter(|name| *name != "procwright-wait");
        let entries = entries(tools, &names.collect::<Vec<_>>());
        let args = slots.args(tools, "idle", &[count, 1, 100]);
        let outcome = round::go(tools, &entries, &args, &[], rounds(effort));
        let case = format!("idle, {count} watched");
        let figures = [
            ("look_ns", "look", "ns"),
            ("cpu_ms", "cpu in 1 s", "ms"),
            ("switches", "switches", "count"),
        ];
        rows(report, &case, &entries, &outcome, &figures);
    }
}
