//! How many system calls a process costs that is waited for, from `strace`.
//!
//! The difference of two runs, one with a thousand processes more: what a run
//! costs besides falls out.

use std::path::PathBuf;
use std::process::Command;

use super::{Slots, argv};
use crate::report::Report;
use crate::round::{self, Effort};
use crate::tools::Tools;

/// Those that do it on one thread, which is the one that is traced.
const SUBJECTS: [&str; 4] = [
    "floor-epoll",
    "procwright-rust-set",
    "procwright-python-wait",
    "psutil-wait-procs",
];

const FEW: u64 = 100;
const MORE: u64 = 1_000;

/// The case: counts, so one round does.
pub(super) fn run(tools: &Tools, _: Effort, slots: &Slots, report: &mut Report) {
    if Command::new("strace").arg("-V").output().is_err() {
        let reason = "strace is not installed: no system calls are counted".to_owned();
        report.missing.insert("strace".to_owned(), reason);
        return;
    }
    let cases = [
        ("idle", "watch", &[0, 0][..]),
        ("mass", "watch and end", &[]),
    ];
    for (case, metric, rest) in cases {
        for subject in SUBJECTS {
            let argv = argv(tools, subject);
            if report.missing.contains_key(subject) || tools.missing(subject, &argv).is_some() {
                continue;
            }
            let count = |processes: u64| {
                let numbers = [&[processes], rest].concat();
                counted(tools, &argv, slots, case, &numbers)
            };
            match (count(FEW), count(FEW + MORE)) {
                (Ok(few), Ok(all)) => {
                    let each = (all - few) / MORE as f64;
                    report.row("system calls a process", subject, metric, "count", &[each]);
                }
                (Err(reason), _) | (_, Err(reason)) => {
                    report
                        .missing
                        .insert(format!("{subject} under strace"), reason);
                }
            }
        }
    }
}

fn counted(
    tools: &Tools,
    argv: &[PathBuf],
    slots: &Slots,
    case: &str,
    numbers: &[u64],
) -> Result<f64, String> {
    let summary = tools.dir.join("log/strace.txt");
    let mut traced: Vec<PathBuf> = ["strace", "-c", "-o"].map(PathBuf::from).into();
    traced.push(summary.clone());
    traced.extend_from_slice(argv);
    round::once(&traced, &slots.args(tools, case, numbers))?;
    let text = std::fs::read_to_string(&summary).map_err(|error| error.to_string())?;
    total(&text).ok_or_else(|| "no total in what strace wrote".to_owned())
}

/// `100.00    0.000842           1       530        12 total`
fn total(summary: &str) -> Option<f64> {
    let line = summary.lines().rfind(|line| line.ends_with(" total"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn reads_the_total() {
        let text = "100.00    0.000842           1       530        12 total\n";
        assert_eq!(total(text), Some(530.0));
        assert_eq!(total("100.00  0.1  1  7     total\n"), Some(7.0));
        assert_eq!(total(""), None);
    }
}
