//! Between two processes of Python.

use super::rounds;
use crate::report::Report;
use crate::round::{self, Effort, Entry};
use crate::suite::{self, words};
use crate::tools::Tools;

const OURS: &str = "procwright";
const OBJECTS: &str = "procwright-objects";
const OBJECTS_MANY: &str = "procwright-objects-many";

/// What is sent, and who can. Of bytes ours are the plain ends, of objects those on
/// top of them.
const CASES: [(&str, &str, &[&str]); 3] = [
    (
        "object",
        "a small tuple",
        &[
            OBJECTS,
            OBJECTS_MANY,
            "Queue",
            "SimpleQueue",
            "Pipe",
            "faster-fifo",
            "faster-fifo-many",
        ],
    ),
    (
        "16",
        "16 bytes",
        &[
            OURS,
            "procwright-many",
            OBJECTS,
            OBJECTS_MANY,
            "Queue",
            "SimpleQueue",
            "Pipe",
            "Pipe-bytes",
            "faster-fifo",
            "faster-fifo-many",
        ],
    ),
    (
        "65536",
        "64 KiB of bytes",
        &[
            OURS,
            "procwright-many",
            OBJECTS,
            OBJECTS_MANY,
            "Queue",
            "SimpleQueue",
            "Pipe",
            "Pipe-bytes",
            "faster-fifo",
            "faster-fifo-many",
        ],
    ),
];

/// Each way, there and back and one way.
pub(super) fn run(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let (ms, many): (u64, &[u64]) = match effort {
        Effort::Quick => (50, &[1]),
        Effort::Rounds(_) => (300, &[1, 4]),
    };
    for (what, named, names) in CASES {
        let trips: Vec<Entry> = names
            .iter()
            .filter(|name| !name.ends_with("-many"))
            .map(|name| entry(tools, name))
            .collect();
        let case = format!("round trip in Python, {named}");
        let args = words([&"trip", &what, &1, &ms]);
        one(
            tools,
            effort,
            report,
            &case,
            &trips,
            &args,
            ("trip_us", "time", "µs"),
        );
        let all: Vec<Entry> = names.iter().map(|name| entry(tools, name)).collect();
        for senders in many {
            let plural = if *senders == 1 { "" } else { "s" };
            let case = format!("one way in Python, {named}, {senders} sender{plural}");
            let args = words([&"rate", &what, senders, &ms]);
            one(
                tools,
                effort,
                report,
                &case,
                &all,
                &args,
                ("per_ms", "rate", "messages/ms"),
            );
        }
    }
}

fn entry(tools: &Tools, name: &str) -> Entry {
    let mut argv = tools.script("python", "queue_python.py");
    argv.push(name.into());
    Entry {
        name: format!("python-{name}"),
        argv,
    }
}

fn one(
    tools: &Tools,
    effort: Effort,
    report: &mut Report,
    case: &str,
    entries: &[Entry],
    args: &[std::ffi::OsString],
    (key, metric, unit): (&str, &str, &str),
) {
    let outcome = round::go(tools, entries, args, &[], rounds(effort));
    let missing = std::mem::take(&mut report.missing);
    suite::rows(report, case, entries, &outcome, &[(key, metric, unit, 1.0)]);
    report.missing = missing;
    super::note_missing(report, case, &outcome);
    let names = |ours: bool| {
        let names = entries.iter().map(|entry| entry.name.as_str());
        names.filter(move |name| name.starts_with("python-procwright") == ours)
    };
    for ours in names(true) {
        for theirs in names(false) {
            let pairs = outcome.ratios(ours, theirs, key);
            report.ratio(case, metric, ours, theirs, &pairs);
        }
    }
}
