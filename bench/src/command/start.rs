//! Until a program that does nothing has run.

use std::time::Duration;

use super::{BARE, RUN, RUN_PTY, RUN_RELAY, RUN_TIMEOUT, SCRIPT, Subject, TIMEOUT, entries, sides};
use crate::report::Report;
use crate::round::{self, Effort, Rounds};
use crate::suite::{Notes, ratios, rows, words};
use crate::tools::Tools;

const CASE: &str = "start of true";

const SUBJECTS: [Subject; 10] = [
    BARE,
    ("env", "", &["env"]),
    ("nice", "", &["nice"]),
    TIMEOUT,
    // It would say that it is not the first process; -s says that it knows.
    ("tini", "tini", &["tini", "-s", "--"]),
    SCRIPT,
    RUN,
    RUN_TIMEOUT,
    RUN_RELAY,
    RUN_PTY,
];

/// The case: so many starts a round, the middle one of which counts.
pub(super) fn run(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    let count = if effort.is_quick() { 15 } else { 60 };
    let entries = entries(tools, notes, &SUBJECTS);
    let rounds = effort.rounds(Rounds {
        least: 3,
        most: 3,
        budget: Duration::ZERO,
    });
    let outcome = round::go(
        tools,
        &entries,
        &words([&"--", &"start", &count]),
        &[],
        rounds,
    );
    let figures = [
        ("ms", "time", "ms", 1.0),
        ("cpu_ms", "processor", "ms", 1.0),
        ("faults", "page faults", "count", 1.0),
    ];
    rows(report, CASE, &entries, &outcome, &figures);
    let (ours, theirs) = sides(&SUBJECTS);
    ratios(report, CASE, &ours, &theirs, &outcome, ["ms", "time"]);
}
