//! What is said at the end of a map.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use procwright::map::StoppedBy;
use serde_json::{Value, json};

use super::results::Tally;
use crate::args::ReportArg;
use crate::human::HumanDuration;
use crate::message;
use crate::report_file::ReportFile;

/// Says what went wrong, if something did. That nobody reads stdout any more is nothing that
/// did.
pub(super) fn print_trouble(tally: &Tally, nobody_reads: bool) {
    if let Some(error) = &tally.error {
        message::print(error);
    }
    for words in trouble(tally, nobody_reads) {
        message::print(words);
    }
}

fn trouble(tally: &Tally, nobody_reads: bool) -> Vec<String> {
    let progress = &tally.progress;
    let mut said: Vec<String> = Vec::new();
    let not_shown = tally.stopped.saturating_sub(progress.stopped);
    let failed = (progress.failed + progress.failed_before).saturating_sub(not_shown);
    if failed > 0 {
        let taken = progress.taken;
        let mut text = match taken {
            1 => "the command has failed".to_owned(),
            _ => format!("{failed} of {taken} commands have failed"),
        };
        match tally.stopped {
            stopped if stopped == 0 || nobody_reads => {}
            1 => text.push_str(", 1 was stopped"),
            stopped => _ = write!(text, ", {stopped} were stopped"),
        }
        if progress.failed_before > 0 {
            let _ = write!(
                text,
                ", {} of them before\n  hint: --rerun-failed runs those again",
                progress.failed_before
            );
        }
        said.push(text);
    }
    if progress.unknown > 0 {
        said.push(format!(
            "{} started before, with an end that is not known, and not run again\n  \
             hint: --rerun-unknown runs them, once you know that they may be",
            were(progress.unknown)
        ));
    }
    match tally.stopped_by {
        Some(StoppedBy::Deadline) => {
            said.push(
                "the deadline has come: what ran was stopped, and no more commands were started"
                    .to_owned(),
            );
        }
        Some(StoppedBy::Failures) => said.push("no more commands were started".to_owned()),
        _ => {}
    }
    said
}

fn were(commands: u64) -> String {
    match commands {
        1 => "1 command was".to_owned(),
        n => format!("{n} commands were"),
    }
}

/// Writes the report that was asked for to `file`, or to stderr.
///
/// # Errors
/// Those of the write.
pub(super) fn write(
    tally: &Tally,
    duration: Duration,
    form: ReportArg,
    file: Option<ReportFile>,
) -> io::Result<()> {
    let text = match form {
        ReportArg::Text => text(tally, duration),
        ReportArg::Json => format!("{}\n", json(tally, duration)),
    };
    match file {
        Some(file) => file.write(&text),
        None => message::print_text(text),
    }
}

fn text(tally: &Tally, duration: Duration) -> String {
    let progress = &tally.progress;
    let mut text = String::new();
    let mut line = |name: &str, value: String| _ = writeln!(text, "{name:<11}{value}");
    line("commands", progress.taken.to_string());
    let counts = [
        ("succeeded", progress.succeeded),
        ("failed", progress.failed),
        ("stopped", progress.stopped),
        ("before", progress.succeeded_before),
        ("… failed", progress.failed_before),
        ("unknown", progress.unknown),
    ];
    for (name, count) in counts {
        if count > 0 {
            line(name, count.to_string());
        }
    }
    if let Some(by) = tally.stopped_by {
        line("stopped by", by.name().to_owned());
    }
    line("time", HumanDuration(duration).to_string());
    text
}

/// The report for programs; `docs/reference/command.md` describes it.
fn json(tally: &Tally, duration: Duration) -> Value {
    let progress = &tally.progress;
    let failures = tally.failures.iter().map(|failed| {
        json!({
            "index": failed.index,
            "argv": failed.argv.iter().map(procwright::text_to_json).collect::<Vec<_>>(),
            "outcome": failed.outcome,
            "summary": failed.summary,
        })
    });
    json!({
        "commands": progress.taken,
        "succeeded": progress.succeeded,
        "failed": progress.failed,
        "stopped": progress.stopped,
        "succeeded_before": progress.succeeded_before,
        "failed_before": progress.failed_before,
        "unknown": progress.unknown,
        "all_taken": progress.all_taken,
        "stopped_by": tally.stopped_by.map(StoppedBy::name),
        "error": tally.error.as_ref().map(ToString::to_string),
        "duration_s": duration.as_secs_f64(),
        "failures": failures.collect::<Vec<_>>(),
        "runs": &tally.runs,
    })
}
