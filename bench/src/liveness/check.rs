//! What a check costs while the peer lives.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{FLOOR, ICEORYX2, OURS, PYTHON, args, entry};
use crate::report::Report;
use crate::round::{self, Effort, Outcome, Rounds};
use crate::stats;
use crate::tools::Tools;

/// How often a program goes through its checks in a round, and how long each
/// takes each time. The middle one counts.
const BATCHES: u64 = 7;
const BATCH_US: u64 = 3_000;

const CASE: &str = "a check";
const IN_PYTHON: &str = "a check in Python";

/// A subject: its program, and its name.
type Subject = (&'static str, String);

/// The case.
pub(super) fn run(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let entries = [OURS, FLOOR, ICEORYX2, PYTHON].map(|name| entry(tools, name));
    let rounds = effort.rounds(Rounds {
        least: 5,
        most: 5,
        budget: Duration::ZERO,
    });
    let args = args("check", [BATCHES, BATCH_US]);
    let outcome = round::go(tools, &entries, &args, &[], rounds);
    let native = subjects(&outcome, &[OURS, FLOOR, ICEORYX2], report);
    let python = subjects(&outcome, &[PYTHON], report);
    for (case, subjects) in [(CASE, &native), (IN_PYTHON, &python)] {
        for (program, name) in subjects {
            let ns = outcome.known(program, name);
            report.row(case, name, "time", "ns", &ns);
        }
    }
    // Of the very memory that `alive` looks at; where ours could not be built,
    // that of the C program.
    let names = [(OURS, "plain load"), (FLOOR, "plain load, C")];
    if let Some(load) = find(&native, &names) {
        compare(report, CASE, &outcome, &native, load);
    }
    // With nothing kept in a register from one look to the next.
    let anew = ["alive, found anew", "plain load, found anew"];
    if let [Some(alive), Some(load)] = anew.map(|name| find(&native, &[(OURS, name)])) {
        let pairs = ratios(&outcome, alive, load);
        report.ratio(CASE, "time", anew[0], anew[1], &pairs);
    }
    if let Some(alive) = find(&python, &[(PYTHON, "alive, Python")]) {
        compare(report, IN_PYTHON, &outcome, &python, alive);
    }
    report.missing.extend(outcome.missing);
}

/// What the programs have measured. What a program says cannot be had is noted.
fn subjects(outcome: &Outcome, programs: &[&'static str], report: &mut Report) -> Vec<Subject> {
    let mut found = BTreeSet::new();
    for program in programs {
        let lines = outcome.lines.get(*program).into_iter().flatten().flatten();
        for (name, figures) in lines.filter_map(|line| line.as_object()).flatten() {
            match figures.as_str() {
                Some(reason) => {
                    report.missing.insert(name.clone(), reason.to_owned());
                }
                None => {
                    found.insert((*program, name.clone()));
                }
            }
        }
    }
    found.into_iter().collect()
}

/// The first of the names that is there.
fn find<'a>(subjects: &'a [Subject], names: &[(&str, &str)]) -> Option<&'a Subject> {
    let same = |name: &(&str, &str)| subjects.iter().find(|(p, n)| (*p, n.as_str()) == *name);
    names.iter().find_map(same)
}

/// Each against that one, of the same round, the cheapest first.
fn compare(report: &mut Report, case: &str, outcome: &Outcome, all: &[Subject], under: &Subject) {
    let others = all.iter().filter(|subject| *subject != under);
    let mut ratios: Vec<_> = others
        .map(|over| (over, ratios(outcome, over, under)))
        .collect();
    ratios.sort_by(|(_, a), (_, b)| middle(a).total_cmp(&middle(b)));
    for ((_, over), pairs) in ratios {
        report.ratio(case, "time", over, &under.1, &pairs);
    }
}

fn ratios(outcome: &Outcome, over: &Subject, under: &Subject) -> Vec<f64> {
    let above = outcome.figures(over.0, &over.1).into_iter();
    let pairs = above.zip(outcome.figures(under.0, &under.1));
    pairs.filter_map(|(a, b)| Some(a? / b?)).collect()
}

fn middle(figures: &[f64]) -> f64 {
    stats::summary(figures).map_or(f64::MAX, |summary| summary.median)
}
