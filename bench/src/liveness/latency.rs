//! From SIGKILL until it is known.

use std::time::Duration;

use super::{OURS, args, entry};
use crate::report::Report;
use crate::round::{self, Effort, Outcome, Rounds};
use crate::stats;
use crate::tools::Tools;

/// In the order of src/bin/rust_liveness/latency.rs.
const WAYS: [&str; 6] = [
    "alive, spinning",
    "wait",
    "alive process, spinning",
    "wait process",
    POLL,
    "poll, pidfd, spinning",
];

/// What is compared with the others.
const POLL: &str = "poll, pidfd";

const WAITERS: u64 = 10;

/// A process that has nothing to give back.
pub(super) fn small(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let kills = at_least(effort, 200).max(20);
    latencies(
        tools,
        effort,
        report,
        "SIGKILL to seen, small process",
        [kills, 0],
    );
}

/// One with much memory, which takes the kernel long to take back.
pub(super) fn large(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let mib = available_mib().map_or(1024, |mib| (mib / 3).min(1024));
    let case = format!("SIGKILL to seen, {mib} MiB resident");
    latencies(tools, effort, report, &case, [at_least(effort, 15), mib]);
}

/// How many of a round make so many of a whole run. A quick one has as few as it
/// can.
fn at_least(effort: Effort, figures: u64) -> u64 {
    match effort {
        Effort::Quick => 1,
        Effort::Rounds(n) => figures.div_ceil(n as u64),
    }
}

fn rounds(effort: Effort) -> Rounds {
    effort.rounds(Rounds {
        least: 3,
        most: 3,
        budget: Duration::ZERO,
    })
}

fn latencies(tools: &Tools, effort: Effort, report: &mut Report, case: &str, numbers: [u64; 2]) {
    let entries = [entry(tools, OURS)];
    let args = args("latency", numbers);
    let outcome = round::go(tools, &entries, &args, &[], rounds(effort));
    for way in WAYS {
        let all = outcome.all(OURS, way);
        report.row(case, way, "p50", "µs", &all);
        let p99 = stats::quantile(&all, 0.99);
        report.row(case, way, "p99", "µs", p99.as_slice());
    }
    for way in WAYS.into_iter().filter(|way| *way != POLL) {
        let pairs = pairs(&outcome, POLL, way);
        report.ratio(case, "p50", POLL, way, &pairs);
    }
    report.missing.extend(outcome.missing);
}

/// Quotients of the middle figures of each round.
fn pairs(outcome: &Outcome, over: &str, under: &str) -> Vec<f64> {
    let over = outcome.figures(OURS, over).into_iter();
    let pairs = over.zip(outcome.figures(OURS, under));
    pairs.filter_map(|(a, b)| Some(a? / b?)).collect()
}

/// Ten who sleep until the same process dies.
pub(super) fn many_waiters(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let entries = [entry(tools, OURS)];
    let kills = at_least(effort, 200).max(20);
    let args = args("waiters", [kills, WAITERS]);
    let outcome = round::go(tools, &entries, &args, &[], rounds(effort));
    let case = format!("SIGKILL to seen, {WAITERS} who sleep");
    for way in ["wait", POLL] {
        let last = outcome.all(OURS, &format!("{way}: last"));
        report.row(&case, way, "last", "µs", &last);
        let p99 = stats::quantile(&last, 0.99);
        report.row(&case, way, "last, p99", "µs", p99.as_slice());
        let first = outcome.all(OURS, &format!("{way}: first"));
        report.row(&case, way, "first", "µs", &first);
    }
    let pairs = pairs(&outcome, &format!("{POLL}: last"), "wait: last");
    report.ratio(&case, "last", POLL, "wait", &pairs);
    report.missing.extend(outcome.missing);
}

/// What a process could have without others being paged out.
fn available_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib >> 10)
}
