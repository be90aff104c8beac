//! Closing a stream that a thread is blocked on, while many others are blocked on others.
//!
//! As the case `others` of the suite `streams`, see `src/streams/close.rs`. Ours has fewer
//! streams than readers where there are many: a child has two, and a process may have so
//! many children. Each reader has a call of its own that is blocked, which is what counts.

use std::path::PathBuf;
use std::time::Duration;

use super::note_missing;
use crate::report::Report;
use crate::round::{self, Effort, Entry, Rounds};
use crate::streams::{Subject, entries, room};
use crate::suite::Notes;
use crate::tools::Tools;

const SUBJECTS: [Subject; 3] = [
    ("procwright-ruby-spill", "close_procwright.rb", &["spill"]),
    ("procwright-ruby-bare", "close_procwright.rb", &["block"]),
    ("ruby-io", "close_io.rb", &["others"]),
];

const PEER: &str = "ruby-io";

/// One of N.
pub(super) fn others(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let samples = if effort.is_quick() { 50 } else { 300 };
    let rounds = effort.rounds(Rounds {
        least: 1,
        most: 1,
        budget: Duration::ZERO,
    });
    let sizes = [10, 1_000, room()];
    let mut all = Vec::new();
    for entry in entries(tools, &SUBJECTS) {
        for size in sizes {
            let mut argv = entry.argv.clone();
            argv.extend([size, samples].map(|number| PathBuf::from(number.to_string())));
            let name = format!("{}/{size}", entry.name);
            all.push(Entry { name, argv });
        }
    }
    let outcome = round::go(tools, &all, &[], &[], rounds);
    let ours = || {
        SUBJECTS
            .iter()
            .map(|(name, ..)| *name)
            .filter(|name| *name != PEER)
    };
    for size in sizes {
        let case = format!("close one of {size}, each with a blocked reader");
        for (metric, share) in [("p50", 0.5), ("p99", 0.99)] {
            for (name, ..) in SUBJECTS {
                let figures = outcome.quantiles(&format!("{name}/{size}"), "close_us", share);
                report.row(&case, name, metric, "µs", &figures);
            }
        }
        for name in ours() {
            let [over, under] = [PEER, name].map(|name| format!("{name}/{size}"));
            let pairs = outcome.ratios(&over, &under, "close_us");
            report.ratio(&case, "p50", PEER, name, &pairs);
        }
    }
    for (name, ..) in SUBJECTS {
        let [few, most] = [sizes[0], sizes[2]].map(|size| format!("{name}/{size}"));
        let pairs = outcome.ratios(&most, &few, "close_us");
        let case = "close one of many, against one of ten";
        report.ratio(case, "p50", &most, &few, &pairs);
    }
    note_missing(report, outcome);
}
