//! How many times a second `/bin/true` is run: started, captured where the name says so,
//! and waited for.

use std::time::Duration;

use crate::report::Report;
use crate::round::{self, Effort, Rounds};
use crate::streams::{Subject, entries};
use crate::suite::{Notes, ratios, rows, words};
use crate::tools::Tools;

const SUBJECTS: [Subject; 7] = [
    ("floor-spawn", "spawn", &[]),
    ("procwright-ruby-run", "spawn_ruby.rb", &["run"]),
    ("procwright-ruby", "spawn_ruby.rb", &["capture"]),
    ("procwright-ruby-capture3", "spawn_ruby.rb", &["capture3"]),
    ("procwright-ruby-spawn", "spawn_ruby.rb", &["spawn"]),
    ("ruby-process-spawn", "spawn_ruby.rb", &["process_spawn"]),
    ("ruby-capture3-true", "spawn_ruby.rb", &["stdlib_capture3"]),
];

/// The case.
pub(super) fn rate(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let batches = if effort.is_quick() { 1 } else { 3 };
    let entries = entries(tools, &SUBJECTS);
    let rounds = effort.rounds(Rounds {
        least: 2,
        most: 2,
        budget: Duration::ZERO,
    });
    // As `floors/spawn.c` reads them: nothing resident beside, and 1 for what it does else.
    let args = words([&300, &batches, &0, &1]);
    let outcome = round::go(tools, &entries, &args, &[], rounds);
    let case = "/bin/true";
    let key = "plain_per_s";
    rows(
        report,
        case,
        &entries,
        &outcome,
        &[(key, "rate", "1/s", 1.0)],
    );
    let pairs = [
        ("procwright-ruby-run", "ruby-process-spawn"),
        ("procwright-ruby", "ruby-capture3-true"),
        ("procwright-ruby-capture3", "ruby-capture3-true"),
    ];
    for (ours, theirs) in pairs {
        ratios(report, case, &[ours], &[theirs], &outcome, [key, "rate"]);
    }
}
