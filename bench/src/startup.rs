//! What it costs to import the Python package and to start the command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::report::Report;
use crate::round::Effort;
use crate::tools::Tools;

const CASE: &str = "start";

struct Subject {
    name: &'static str,
    argv: Vec<PathBuf>,
    beside: Option<&'static str>,
    milliseconds: Vec<f64>,
}

/// The case.
pub fn run(tools: &Tools, effort: Effort, report: &mut Report) {
    let subject = |name, argv: &[&Path], beside| Subject {
        name,
        argv: argv.iter().map(|word| word.to_path_buf()).collect(),
        beside,
        milliseconds: Vec::new(),
    };
    let python = tools.python.as_path();
    let word = |text: &'static str| Path::new(text);
    let import = |code| [python, word("-I"), word("-c"), word(code)];
    let command = tools.built("procwright");
    let mut subjects = [
        subject("true", &[word("/bin/true")], None),
        subject("env-true", &[word("env"), word("true")], None),
        subject(
            "procwright-run-true",
            &[&command, word("run"), word("true")],
            Some("env-true"),
        ),
        subject("python-pass", &import("pass"), None),
        subject(
            "python-import-subprocess",
            &import("import subprocess"),
            None,
        ),
        subject(
            "python-import-procwright",
            &import("import procwright"),
            Some("python-import-subprocess"),
        ),
    ];
    for subject in &mut subjects {
        if let Some(reason) = tools.missing(subject.name, &subject.argv) {
            report.missing.insert(subject.name.to_owned(), reason);
            subject.argv.clear();
        }
    }
    for _ in 0..if effort.is_quick() { 15 } else { 60 } {
        for subject in &mut subjects {
            subject.milliseconds.extend(once(&subject.argv));
        }
    }
    for subject in &subjects {
        report.row(CASE, subject.name, "time", "ms", &subject.milliseconds);
        let beside = subjects
            .iter()
            .find(|other| Some(other.name) == subject.beside);
        let Some(beside) = beside else { continue };
        let pairs: Vec<f64> = subject
            .milliseconds
            .iter()
            .zip(&beside.milliseconds)
            .map(|(a, b)| a / b)
            .collect();
        report.ratio(CASE, "time", subject.name, beside.name, &pairs);
    }
}

fn once(argv: &[PathBuf]) -> Option<f64> {
    let (program, args) = argv.split_first()?;
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status().ok()?;
    status
        .success()
        .then(|| started.elapsed().as_secs_f64() * 1e3)
}
