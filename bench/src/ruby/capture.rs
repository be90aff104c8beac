//! All that a child writes on both streams, in pieces of 4,096 bytes: the benchmark that
//! the library was founded on. The child is a Ruby program, as there, and one in C, for a
//! generator that is slower than its readers shows nothing of them.

use std::path::PathBuf;
use std::time::Duration;

use crate::capture::{DISCARD, argv, flood};
use crate::report::Report;
use crate::round::{self, Effort, Entry, Rounds};
use crate::stats;
use crate::suite::{Notes, ratios, rows, words};
use crate::tools::Tools;

const MIB: u64 = 1 << 20;
const WRITE: u64 = 4 << 10;

/// Readers in C; the one that keeps nothing shows how fast the child is at best.
const FLOORS: [&str; 3] = [DISCARD, "floor-threads", "floor-threads-huge"];

const OURS: [&str; 2] = ["procwright-ruby", "procwright-ruby-capture3"];

const PEERS: [&str; 3] = ["ruby-capture3", "ruby-threads-read", "ruby-nonblock-select"];

fn entry(tools: &Tools, name: &str) -> Entry {
    let script = |file: &str| tools.script("ruby", file);
    let ours = |how: &str| {
        let mut argv = script("procwright_run.rb");
        argv.push(PathBuf::from(how));
        argv
    };
    Entry {
        name: name.to_owned(),
        argv: match name {
            "procwright-ruby" => ours("run"),
            "procwright-ruby-capture3" => ours("capture3"),
            "ruby-threads-read" => script("ruby_read.rb"),
            "ruby-nonblock-select" => script("ruby_select.rb"),
            other => argv(tools, other),
        },
    }
}

/// Written by a Ruby program.
pub(super) fn by_ruby(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let bytes = size(effort);
    let child = tools.peers.join("flood.rb");
    let args = words([&child.display(), &2, &bytes, &WRITE]);
    measure(tools, effort, "a Ruby program", bytes, &args, report);
}

/// Written by a C program, with a thread for each stream.
pub(super) fn by_c(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let bytes = size(effort);
    let args = flood(tools, 2, bytes, WRITE);
    measure(tools, effort, "a C program", bytes, &args, report);
}

fn size(effort: Effort) -> u64 {
    let mib = if effort.is_quick() { 64 } else { 1024 };
    mib * MIB
}

fn measure(
    tools: &Tools,
    effort: Effort,
    who: &str,
    bytes: u64,
    args: &[std::ffi::OsString],
    report: &mut Report,
) {
    let rounds = effort.rounds(Rounds {
        least: 2,
        most: 5,
        budget: Duration::from_secs(8),
    });
    let names = FLOORS.iter().chain(&OURS).chain(&PEERS);
    let entries: Vec<Entry> = names.map(|name| entry(tools, name)).collect();
    let expect = [("bytes_out", bytes), ("bytes_err", bytes)];
    let outcome = round::go(tools, &entries, args, &expect, rounds);
    let case = format!("2 x {} MiB that {who} writes", bytes / MIB);
    rows(
        report,
        &case,
        &entries,
        &outcome,
        &[("seconds", "time", "s", 1.0)],
    );
    for Entry { name, .. } in entries.iter().filter(|entry| entry.name != DISCARD) {
        let peaks = outcome.known(name, "peak_rss_kb");
        let above = |kb: &f64| kb / 1024.0 - (2 * bytes / MIB) as f64;
        let above: Vec<f64> = peaks.iter().map(above).collect();
        report.row(&case, name, "peak memory above data", "MiB", &above);
    }
    let figure = ["seconds", "time"];
    ratios(report, &case, &PEERS, &OURS, &outcome, figure);
    let median = |name: &str| stats::summary(&outcome.known(name, "seconds")).map(|s| s.median);
    let known = FLOORS[1..]
        .iter()
        .filter_map(|name| Some((*name, median(name)?)));
    let floor = known
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(name, _)| name);
    let floors: Vec<&str> = floor.into_iter().chain([DISCARD]).collect();
    ratios(report, &case, &OURS, &floors, &outcome, figure);
}
