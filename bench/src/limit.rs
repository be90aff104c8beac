//! A child that writes 10 GiB, of which 1 MiB is kept, beside a reader that
//! keeps nothing.

use std::time::Duration;

use crate::capture::{DISCARD, argv, flood};
use crate::report::Report;
use crate::round::{self, Effort, Entry, Rounds};
use crate::tools::Tools;

const OURS: [&str; 2] = ["procwright-rust-limit", "procwright-python-limit"];

/// The case.
pub fn run(tools: &Tools, effort: Effort, report: &mut Report) {
    let gib: u64 = if effort.is_quick() { 1 } else { 10 };
    let bytes = gib << 30;
    let case = format!("{gib} GiB, head and tail of 1 MiB kept");
    let rounds = effort.rounds(Rounds {
        least: 3,
        most: 5,
        budget: Duration::from_secs(3),
    });
    let entries = [
        (DISCARD, argv(tools, DISCARD)),
        (OURS[0], vec![tools.built("bench-rust-limit")]),
        (OURS[1], tools.script("python", "procwright_limit.py")),
    ]
    .map(|(name, argv)| Entry {
        name: name.to_owned(),
        argv,
    });
    let args = flood(tools, 1, bytes, 64 << 10);
    let expect = [("bytes_out", bytes), ("bytes_err", 0)];
    let outcome = round::go(tools, &entries, &args, &expect, rounds);
    for Entry { name, .. } in &entries {
        report.row(&case, name, "time", "s", &outcome.known(name, "seconds"));
        let peak: Vec<f64> = outcome
            .known(name, "peak_rss_kb")
            .iter()
            .map(|kb| kb / 1024.0)
            .collect();
        report.row(&case, name, "peak memory", "MiB", &peak);
    }
    for ours in OURS {
        report.ratio(
            &case,
            "time",
            ours,
            DISCARD,
            &outcome.ratios(ours, DISCARD, "seconds"),
        );
    }
    report.missing.extend(outcome.missing);
}
