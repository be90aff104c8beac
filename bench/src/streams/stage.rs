//! A stage between two commands.

use std::ffi::OsString;
use std::time::Duration;

use super::{Notes, Subject, entries, ratios, rows, words};
use crate::report::Report;
use crate::round::{self, Effort, Rounds};
use crate::tools::Tools;

const STAGE: &str = "bench-stage";

/// The stages, each as a user would ask for some 16 MiB. `pv` has its buffer only
/// with `-C`; without it moves pages from pipe to pipe.
const STAGES: [Subject; 7] = [
    ("bare-pipe", STAGE, &["bare"]),
    ("cat", STAGE, &["cat"]),
    ("pv-splice", STAGE, &["pv", "-q", "-B", "16m"]),
    ("pv-buffer", STAGE, &["pv", "-q", "-C", "-B", "16m"]),
    ("mbuffer", STAGE, &["mbuffer", "-q", "-m", "16M"]),
    ("procwright-buffer-spill", STAGE, &["PROCWRIGHT", "buffer"]),
    (
        "procwright-buffer-block",
        STAGE,
        &["PROCWRIGHT", "buffer", "--overflow", "block"],
    ),
];

const OURS: [&str; 2] = ["procwright-buffer-spill", "procwright-buffer-block"];
const THEIRS: [&str; 5] = ["bare-pipe", "cat", "pv-splice", "pv-buffer", "mbuffer"];

fn run(
    tools: &Tools,
    effort: Effort,
    report: &mut Report,
    case: &str,
    args: &[OsString],
    bytes: u64,
    figure: [&str; 2],
) {
    let mut entries = entries(tools, &STAGES);
    for entry in &mut entries {
        for word in &mut entry.argv {
            if word.as_os_str() == "PROCWRIGHT" {
                *word = tools.built("procwright");
            }
        }
    }
    let rounds = effort.rounds(Rounds {
        least: 1,
        most: 1,
        budget: Duration::ZERO,
    });
    let outcome = round::go(tools, &entries, args, &[("bytes", bytes)], rounds);
    let [key, metric] = figure;
    rows(report, case, &entries, &outcome, &[(key, metric, "s", 1.0)]);
    ratios(report, case, &OURS, &THEIRS, &outcome, figure);
}

/// `flood | stage | discard`.
pub(super) fn throughput(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let mib: u64 = if effort.is_quick() { 128 } else { 1024 };
    let bytes = mib << 20;
    for kib in [4, 64] {
        let child = tools.built("flood");
        let args = words([&"--", &0, &"-", &child.display(), &1, &bytes, &(kib << 10)]);
        let case = format!("{mib} MiB in writes of {kib} KiB, through a stage");
        run(
            tools,
            effort,
            report,
            &case,
            &args,
            bytes,
            ["seconds", "time"],
        );
    }
}

/// Bursts of 8 MiB, ten a second, and a reader who takes so much a second evenly:
/// the seconds that the writer spends inside `write`.
pub(super) fn bursts(tools: &Tools, effort: Effort, notes: &Notes, report: &mut Report) {
    let count: u64 = if effort.is_quick() { 6 } else { 24 };
    let (burst, step_us) = (8 << 20, 100_000);
    for rate in [100, 40] {
        let (child, note) = (tools.built("ticker"), notes.of("stage"));
        let (child, note) = (child.display(), note.display());
        let rate_bytes = rate << 20;
        let args = words([
            &"--",
            &rate_bytes,
            &note,
            &child,
            &note,
            &count,
            &burst,
            &step_us,
        ]);
        let case = format!("{count} bursts of 8 MiB, one every 0.1 s, a reader of {rate} MiB/s");
        run(
            tools,
            effort,
            report,
            &case,
            &args,
            count * burst,
            ["held_s", "held up"],
        );
    }
}
