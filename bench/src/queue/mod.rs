//! Queues: round trips, one way with many senders, bursts, growth, and what is
//! counted.

mod count;
mod python;
mod rate;
mod room;
mod trip;

use std::ffi::OsString;
use std::io;

use crate::report::Report;
use crate::round::{self, Effort, Entry, Outcome, Rounds};
use crate::stats;
use crate::suite::{self, Part, words};
use crate::tools::Tools;

/// The parts, in the order in which they run.
pub const PARTS: [&str; 8] = [
    "trip",
    "first",
    "rate",
    "burst",
    "growth",
    "calls",
    "instructions",
    "python",
];

/// Every part of that name, or all; `save` is called after each.
///
/// # Errors
/// What `save` fails with.
pub fn run(
    tools: &Tools,
    effort: Effort,
    only: Option<&str>,
    report: &mut Report,
    save: impl FnMut(&Report) -> io::Result<()>,
) -> io::Result<()> {
    let all: [Part<()>; 8] = [
        trip::run,
        trip::first,
        rate::run,
        room::bursts,
        room::growth,
        count::calls,
        count::instructions,
        python::run,
    ];
    let parts = PARTS.into_iter().zip(all);
    let wanted = parts.filter(|(name, _)| only.is_none_or(|only| only == *name));
    let parts: Vec<Part<()>> = wanted.map(|(_, part)| part).collect();
    suite::run(&parts, tools, effort, &(), report, save)
}

/// What is compared with all others.
const OURS: [&str; 3] = ["procwright", "procwright-reserve", "procwright-many"];

/// Who goes from process to process.
const PEERS: [&str; 8] = [
    "iceoryx2",
    "cloudtoid",
    "cloudtoid-batch",
    "ipc-channel",
    "ipc-channel-memory",
    "mq",
    "seqpacket",
    "pipe",
];

/// Between threads: no peer, but a bound.
const THREADS: &str = "rtrb-threads";

const LENGTHS: [usize; 5] = [16, 64, 1 << 10, 64 << 10, 4 << 20];

/// How the receiver waits, as an argument and in the name of a case.
const WAITS: [(&str, &str); 2] = [("spin", "spinning"), ("sleep", "sleeping")];

fn length(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// Batches are for more than one message at a time, and a piece of memory for each
/// message only for long ones.
fn is_of_use(subject: &str, length: usize, is_many: bool) -> bool {
    match subject {
        "procwright-many" | "cloudtoid-batch" => is_many && length <= 1 << 10,
        "ipc-channel-memory" => length >= 64 << 10,
        _ => true,
    }
}

fn entry(tools: &Tools, name: &str) -> Entry {
    Entry {
        name: name.to_owned(),
        argv: vec![tools.queue.clone(), name.into()],
    }
}

fn rounds(effort: Effort) -> Rounds {
    effort.rounds(ONCE)
}

const ONCE: Rounds = Rounds {
    least: 1,
    most: 1,
    budget: std::time::Duration::ZERO,
};

/// The arguments of a case: how to wait, length, senders, and three numbers.
fn args(case: &str, wait: &str, numbers: [u64; 5]) -> Vec<OsString> {
    let [length, senders, a, b, c] = numbers;
    words([&case, &wait, &length, &senders, &a, &b, &c])
}

/// Who could not be run in this case, with the reason.
fn note_missing(report: &mut Report, case: &str, outcome: &Outcome) {
    for (name, reason) in &outcome.missing {
        report
            .missing
            .insert(format!("{name} ({case})"), reason.clone());
    }
}

/// Ours, round by round, over the floor and over the best of the peers, by name: so
/// it is seen where one is ahead.
fn compare(
    report: &mut Report,
    case: &str,
    outcome: &Outcome,
    entries: &[Entry],
    figure: (&str, &str),
    is_rate: bool,
) {
    let (key, metric) = figure;
    let middle = |name: &str| stats::summary(&outcome.known(name, key)).map(|found| found.median);
    let best = |names: &mut dyn Iterator<Item = &str>| {
        let found = names.filter_map(|name| Some((name.to_owned(), middle(name)?)));
        let order = |a: &(String, f64), b: &(String, f64)| a.1.total_cmp(&b.1);
        match is_rate {
            true => found.max_by(order),
            false => found.min_by(order),
        }
    };
    let names = || entries.iter().map(|entry| entry.name.as_str());
    let is_ours = |name: &&str| OURS.contains(name);
    let floors = names().filter(|name| name.starts_with("floor") || *name == THREADS);
    let peers = best(&mut names().filter(|name| PEERS.contains(name)));
    for ours in names().filter(is_ours) {
        let peers = peers.iter().map(|(name, _)| name.as_str());
        for other in floors.clone().chain(peers) {
            let pairs = outcome.ratios(ours, other, key);
            report.ratio(case, metric, ours, other, &pairs);
        }
    }
}

/// Runs a case, writes its rows, and compares.
fn measure(
    tools: &Tools,
    report: &mut Report,
    case: &str,
    entries: &[Entry],
    args: &[OsString],
    rounds: Rounds,
    figures: &[(&str, &str, &str, f64)],
) {
    let outcome = round::go(tools, entries, args, &[], rounds);
    let [(key, metric, ..), ..] = figures else {
        return;
    };
    let missing = std::mem::take(&mut report.missing);
    suite::rows(report, case, entries, &outcome, figures);
    report.missing = missing;
    note_missing(report, case, &outcome);
    let is_rate = *metric == "rate";
    compare(report, case, &outcome, entries, (key, metric), is_rate);
}
