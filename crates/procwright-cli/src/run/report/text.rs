//! The report for people: a line for each thing worth knowing, on 80 columns.

use std::fmt::Write as _;

use procwright::process::{Exit, Signal};
use procwright::{Reason, Report, StreamInfo};

use super::command_report::CommandReport;
use crate::colour;
use crate::human::{HumanBytes, HumanDuration};
use crate::run::input_wanted::Asked;
use crate::run::output::LogFigures;

const WIDTH: usize = 80;
/// Column at which the values begin.
const INDENT: usize = 11;
/// Characters of a command that are shown at most; the JSON has all of it.
const MOST_OF_COMMAND: usize = 3 * (WIDTH - INDENT);

pub(super) fn text(report: &Report, own: &CommandReport, coloured: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<INDENT$}{}", wrapped(value));
    };
    line("command", &shortened(&report.command()));
    let outcome = outcome(report, own);
    match coloured {
        // The escapes count as columns, though they have none: a long outcome is
        // wrapped a little early.
        true => line("outcome", &colour::green_or_red(&outcome, report.success())),
        false => line("outcome", &outcome),
    }
    if let Some(asked) = &own.asked {
        line("input", &input(asked));
    }
    line("time", &time(report));
    if let Some(bytes) = report.max_rss_bytes {
        let peak = format!("{} at the peak of the largest process", HumanBytes(bytes));
        line("memory", &peak);
    }
    let streams = [
        ("stdout", &report.stdout_info),
        ("stderr", &report.stderr_info),
    ];
    for (name, info) in streams {
        if let Some(info) = info {
            line(name, &stream(info, report.pid));
        }
    }
    for survivor in &report.survivors {
        let fact = match (survivor.pid, survivor.state) {
            (None, _) | (_, '?') => survivor.to_string(),
            _ => format!("{survivor}: could not be ended"),
        };
        line("left", &fact);
    }
    let survives = |pid: i32| {
        report
            .survivors
            .iter()
            .any(|survivor| survivor.pid == Some(pid))
    };
    for left in own.left.iter().flatten() {
        if !survives(left.pid) {
            line("left", &format!("{left}: goes on in the background"));
        }
    }
    if own.attempts > 1 {
        let total = HumanDuration(own.total);
        line("attempts", &format!("{}, {total} in all", own.attempts));
    }
    if let Some(log) = &own.log {
        line("log", &logged(log));
    }
    text
}

fn outcome(report: &Report, own: &CommandReport) -> String {
    let why = match (report.reason, own.signal.map(Signal::new)) {
        (Reason::Finished, _) if report.oom_kills.is_none() => return status(report.status),
        // What has killed it, or its last command, is known a little better then.
        (Reason::Finished, _) => return report.outcome(),
        (Reason::Cancelled, Some(Ok(signal))) => {
            format!("was stopped, as procwright got {signal}")
        }
        _ if own.stopped_for_input => String::from("was stopped, as it waited for input"),
        _ => report.outcome(),
    };
    // The status: the stop's signal, or the program's answer to it.
    format!("{why}; {}", report.status)
}

/// Status with the meaning of its signal, where that is known.
fn status(status: Exit) -> String {
    match status.signal().and_then(meaning) {
        Some(meaning) => format!("{status}: {meaning}"),
        None => status.to_string(),
    }
}

/// Meaning of a signal. The system does not tell who sent it.
fn meaning(signal: Signal) -> Option<&'static str> {
    Some(match signal.name().as_ref() {
        "SIGHUP" => "hang-up, as when a terminal closes",
        "SIGINT" => "interrupt, as by Ctrl-C",
        "SIGQUIT" => "quit, as by Ctrl-\\",
        "SIGILL" => "illegal instruction",
        "SIGABRT" => "abort, as after a failed assertion",
        "SIGBUS" => "access to memory that is not there",
        "SIGFPE" => "arithmetic error, as a division by zero",
        "SIGKILL" => "the system does not tell by whom",
        "SIGSEGV" => "access to memory that it does not have",
        "SIGSYS" => "system call that is not allowed",
        "SIGPIPE" => "write to a pipe that nobody reads",
        "SIGTERM" => "asked to end",
        "SIGXCPU" => "limit of processor time",
        "SIGXFSZ" => "limit of file size",
        _ => return None,
    })
}

/// Who waited for input last, and with which words.
fn input(asked: &Asked) -> String {
    match &asked.prompt {
        Some(prompt) => format!("{}; asked: {prompt:?}", asked.waiting.text),
        None => asked.waiting.text.clone(),
    }
}

fn time(report: &Report) -> String {
    let mut text = HumanDuration(report.duration).to_string();
    if let (Some(user), Some(system)) = (report.cpu_user, report.cpu_system) {
        let _ = write!(
            text,
            "; CPU {} user, {} system",
            HumanDuration(user),
            HumanDuration(system)
        );
        let used = (user + system).as_secs_f64() / report.duration.as_secs_f64();
        if used.is_finite() {
            let _ = write!(text, ", {:.0} % of one core", used * 100.0);
        }
    }
    text
}

fn stream(info: &StreamInfo, program: i32) -> String {
    let mut text = HumanBytes(info.bytes).to_string();
    text.push_str(match info.complete {
        true => ", complete",
        false => ", left before its end",
    });
    if let Some(blocked) = info.blocked.filter(|blocked| !blocked.is_zero()) {
        let _ = write!(text, "; pipe full for up to {}", HumanDuration(blocked));
    }
    if info.dropped_bytes > 0 {
        let _ = write!(
            text,
            "; {} left out, beyond the limit",
            HumanBytes(info.dropped_bytes)
        );
    }
    if info.undelivered_bytes > 0 {
        let _ = write!(
            text,
            "; {} not passed on",
            HumanBytes(info.undelivered_bytes)
        );
    }
    // The program itself is left out: it holds its pipe as long as it lives.
    let others = info.held_by.iter().filter(|holder| holder.pid != program);
    let holders: Vec<_> = others.map(ToString::to_string).collect();
    if !holders.is_empty() {
        let _ = write!(text, "; held open by {}", holders.join(", "));
        if !info.held_by_complete {
            text.push_str(" and perhaps others");
        }
    }
    if let Some(path) = &info.kept_at {
        let _ = write!(text, "; all of it in {}", path.display());
        if let Some(error) = &info.kept_error {
            let _ = write!(text, ", but not whole: {error}");
        }
    }
    text
}

fn logged(log: &LogFigures) -> String {
    let mut text = format!("{}, {}", log.path.display(), HumanBytes(log.bytes));
    match log.rotations {
        0 => {}
        1 => text.push_str(" in 2 files"),
        n => _ = write!(text, " in {} files", n + 1),
    }
    if log.lost_bytes > 0 {
        let _ = write!(text, "; {} are missing", HumanBytes(log.lost_bytes));
    }
    text
}

fn shortened(command: &str) -> String {
    match command.char_indices().nth(MOST_OF_COMMAND) {
        None => command.to_owned(),
        Some(_) => {
            let shown: String = command.chars().take(MOST_OF_COMMAND - 2).collect();
            format!("{shown} …")
        }
    }
}

/// `value` wrapped at spaces, each further line under the first.
fn wrapped(value: &str) -> String {
    let mut text = String::new();
    let mut column = INDENT;
    for word in value.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if column > INDENT && column + width > WIDTH {
            text.truncate(text.trim_end().len());
            let _ = write!(text, "\n{:INDENT$}", "");
            column = INDENT;
        }
        text.push_str(word);
        column += word.chars().count();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_stay_on_the_screen() {
        let words = "word ".repeat(40);
        let text = wrapped(words.trim_end());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() > 1);
        assert!(lines[0].chars().count() <= WIDTH - INDENT);
        for line in &lines[1..] {
            assert!(line.starts_with("           word") && line.len() <= WIDTH);
        }
        assert_eq!(text.split_whitespace().count(), 40);
        // Words are not cut.
        assert_eq!(wrapped(&"x".repeat(100)), "x".repeat(100));
        assert_eq!(
            shortened(&"é ".repeat(500)).chars().count(),
            MOST_OF_COMMAND
        );
    }

    #[test]
    fn logs() {
        let log = |rotations, lost_bytes| {
            logged(&LogFigures {
                path: "build.log".into(),
                bytes: 2048,
                lost_bytes,
                rotations,
            })
        };
        assert_eq!(log(0, 0), "build.log, 2.0 KiB");
        assert_eq!(
            log(2, 5),
            "build.log, 2.0 KiB in 3 files; 5 bytes are missing"
        );
    }

    #[test]
    fn signals_are_named_and_explained() {
        let ended = |signal| {
            status(Exit::Signal {
                signal,
                core: false,
            })
        };
        assert_eq!(
            ended(Signal::KILL),
            "killed by SIGKILL: the system does not tell by whom"
        );
        assert_eq!(ended(Signal::USR1), "killed by SIGUSR1");
        assert_eq!(status(Exit::Code(2)), "exited with code 2");
    }
}
