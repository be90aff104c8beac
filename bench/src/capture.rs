//! Keeping all output of a child that writes as fast as it can: time and peak
//! memory.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::report::Report;
use crate::round::{self, Effort, Entry, Outcome, Rounds};
use crate::tools::Tools;

const MIB: u64 = 1 << 20;

/// The plain C programs; the fastest of them in a case is its floor.
const FLOORS: [&str; 4] = [
    "floor-poll",
    "floor-poll-huge",
    "floor-threads",
    "floor-threads-huge",
];

/// Keeps nothing: says how much of the time is the pipe's.
pub(crate) const DISCARD: &str = "discard";

const OURS: [&str; 2] = ["procwright-rust", "procwright-python"];

const PEERS: [&str; 8] = [
    "python-subprocess",
    "python-threads",
    "ruby-capture3",
    "ruby-threads",
    "rust-std",
    "duct",
    "go-exec",
    "node-execfile",
];

struct Case {
    what: &'static str,
    streams: u64,
    write: u64,
}

const CASES: [Case; 3] = [
    Case {
        what: "4 KiB writes",
        streams: 2,
        write: 4 << 10,
    },
    Case {
        what: "64 KiB writes",
        streams: 2,
        write: 64 << 10,
    },
    Case {
        what: "4 KiB writes",
        streams: 1,
        write: 4 << 10,
    },
];

/// How a subject is started.
pub(crate) fn argv(tools: &Tools, subject: &str) -> Vec<PathBuf> {
    let built = |name: &str| vec![tools.built(name)];
    let huge = |name: &str| vec![tools.built(name), PathBuf::from("--huge")];
    match subject {
        "floor-poll" => built("poll_loop"),
        "floor-poll-huge" => huge("poll_loop"),
        "floor-threads" => built("two_threads"),
        "floor-threads-huge" => huge("two_threads"),
        "python-subprocess" => tools.script("python", "subprocess_run.py"),
        "python-threads" => tools.script("python", "python_threads.py"),
        "procwright-python" => tools.script("python", "procwright_run.py"),
        "ruby-capture3" => tools.script("ruby", "ruby_capture3.rb"),
        "ruby-threads" => tools.script("ruby", "ruby_threads.rb"),
        "node-execfile" => tools.script("node", "node_exec_file.js"),
        "go-exec" => built("go_exec"),
        "duct" => built("bench-duct"),
        "rust-std" => built("bench-rust-std"),
        "procwright-rust" => built("bench-rust-run"),
        other => built(other),
    }
}

/// Every case; `save` is called after each, for they take minutes.
///
/// # Errors
/// What `save` fails with.
pub fn run(
    tools: &Tools,
    effort: Effort,
    report: &mut Report,
    mut save: impl FnMut(&Report) -> io::Result<()>,
) -> io::Result<()> {
    let bytes = if effort.is_quick() {
        64 * MIB
    } else {
        1024 * MIB
    };
    let rounds = effort.rounds(Rounds {
        least: 3,
        most: 15,
        budget: Duration::from_secs(9),
    });
    let names = FLOORS.iter().chain(&[DISCARD]).chain(&OURS).chain(&PEERS);
    let entries: Vec<Entry> = names
        .map(|name| Entry {
            name: (*name).to_owned(),
            argv: argv(tools, name),
        })
        .collect();
    for case in &CASES {
        let args = flood(tools, case.streams, bytes, case.write);
        let expect = [
            ("bytes_out", bytes),
            ("bytes_err", (case.streams - 1) * bytes),
        ];
        let outcome = round::go(tools, &entries, &args, &expect, rounds);
        let name = format!("{} x {} MiB in {}", case.streams, bytes / MIB, case.what);
        record(&name, case.streams * bytes, &entries, &outcome, report);
        report.missing.extend(outcome.missing);
        save(report)?;
    }
    Ok(())
}

/// The workload's arguments: CHILD STREAMS BYTES WRITE.
pub(crate) fn flood(tools: &Tools, streams: u64, bytes: u64, write: u64) -> Vec<OsString> {
    let numbers = [streams, bytes, write].map(|number| number.to_string().into());
    [tools.built("flood").into_os_string()]
        .into_iter()
        .chain(numbers)
        .collect()
}

fn record(case: &str, data: u64, entries: &[Entry], outcome: &Outcome, report: &mut Report) {
    for Entry { name, .. } in entries {
        let seconds = outcome.known(name, "seconds");
        report.row(case, name, "time", "s", &seconds);
        let speed: Vec<f64> = seconds
            .iter()
            .map(|seconds| data as f64 / seconds / (1u64 << 30) as f64)
            .collect();
        report.row(case, name, "speed", "GiB/s", &speed);
        let above: Vec<f64> = outcome
            .known(name, "peak_rss_kb")
            .iter()
            .map(|kb| kb / 1024.0 - data as f64 / MIB as f64)
            .collect();
        if name != DISCARD {
            report.row(case, name, "peak memory above data", "MiB", &above);
        }
    }
    let mut add = |over: &str, under: &str| {
        report.ratio(
            case,
            "time",
            over,
            under,
            &outcome.ratios(over, under, "seconds"),
        );
    };
    let floor = FLOORS.iter().filter_map(|floor| {
        let median = crate::stats::summary(&outcome.known(floor, "seconds"))?.median;
        Some((*floor, median))
    });
    if let Some((floor, _)) = floor.min_by(|a, b| a.1.total_cmp(&b.1)) {
        OURS.iter().chain(&PEERS).for_each(|name| add(name, floor));
    }
    for ours in OURS {
        PEERS.iter().for_each(|peer| add(peer, ours));
    }
}
