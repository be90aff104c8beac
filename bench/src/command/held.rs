//! What is there while the program runs: memory, threads, wake-ups.

use std::time::Duration;

use super::{
    RUN, RUN_LOG, RUN_PTY, RUN_RELAY, RUN_TIMEOUT, SCRIPT, Subject, TEE, TIMEOUT, entries,
};
use crate::report::Report;
use crate::round::{self, Effort, Rounds};
use crate::suite::{Notes, rows, words};
use crate::tools::Tools;

const SUBJECTS: [Subject; 9] = [
    TIMEOUT,
    ("tini", "tini", &["tini", "-s", "--"]),
    TEE,
    SCRIPT,
    RUN,
    RUN_TIMEOUT,
    RUN_RELAY,
    RUN_LOG,
    RUN_PTY,
];

/// Of the process in front alone, after output and in a second of silence. These
/// are counts, so a few rounds do.
pub(super) fn run(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    let count: u64 = if effort.is_quick() {
        100_000
    } else {
        1_000_000
    };
    let (least, most) = if effort.is_quick() { (1, 1) } else { (3, 3) };
    let entries = entries(tools, notes, &SUBJECTS);
    let child = tools.built("lines");
    let args = words([&"--", &"held", &1_000, &child.display(), &count, &4_000]);
    let rounds = Rounds {
        least,
        most,
        budget: Duration::ZERO,
    };
    let outcome = round::go(tools, &entries, &args, &[], rounds);
    let case = format!("{} MB of output, then a second of silence", count / 10_000);
    let figures = [
        ("switches", "switches", "a second", 1.0),
        ("peak_rss_kb", "peak memory", "MiB", 1024.0),
        ("private_kb", "… its own", "MiB", 1024.0),
        ("threads", "threads", "count", 1.0),
        ("cpu_ms", "processor in that second", "ms", 1.0),
    ];
    rows(report, &case, &entries, &outcome, &figures);
}
