//! The report at the end of a run.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};

use procwright::{Reason, Report, StreamInfo};

use crate::args::ReportArg;
use crate::figures::{Seconds, Size};

/// Writes the report to `file`, or to stderr.
///
/// # Errors
/// Those of the write.
pub(crate) fn write(report: &Report, form: ReportArg, file: Option<File>) -> io::Result<()> {
    let text = match form {
        ReportArg::Text => text(report),
        ReportArg::Json => format!("{}\n", report.to_json_with(None, None, None)),
    };
    match file {
        Some(mut file) => file.write_all(text.as_bytes()),
        None => io::stderr().write_all(text.as_bytes()),
    }
}

/// For people: a line for each thing worth knowing.
fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<10} {value}");
    };
    line("command", &report.command());
    line("outcome", &outcome(report));
    line("time", &time(report));
    if let Some(bytes) = report.max_rss_bytes {
        line("memory", &format!("{} at the peak", Size(bytes)));
    }
    let streams = [
        ("stdout", &report.stdout_info),
        ("stderr", &report.stderr_info),
    ];
    for (name, info) in streams {
        if let Some(info) = info {
            line(name, &stream(info));
        }
    }
    for survivor in &report.survivors {
        line("survivor", &survivor.to_string());
    }
    text
}

fn outcome(report: &Report) -> String {
    let why = match report.reason {
        Reason::Finished => return report.status.to_string(),
        Reason::Timeout => "timed out",
        Reason::IdleTimeout => "was silent for too long",
        Reason::OutputLimit => "wrote more than the limit",
        Reason::Cancelled => "was stopped by a signal",
        _ => "was stopped",
    };
    format!("{why}; {}", report.status)
}

fn time(report: &Report) -> String {
    let mut text = Seconds(report.duration).to_string();
    if let (Some(user), Some(system)) = (report.cpu_user, report.cpu_system) {
        let _ = write!(
            text,
            ", CPU {} user + {} system",
            Seconds(user),
            Seconds(system)
        );
    }
    text
}

fn stream(info: &StreamInfo) -> String {
    let mut text = Size(info.bytes).to_string();
    if let Some(blocked) = info.blocked.filter(|blocked| !blocked.is_zero()) {
        let _ = write!(text, ", pipe full for up to {}", Seconds(blocked));
    }
    if !info.complete {
        text.push_str(", left before its end");
    }
    if info.undelivered_bytes > 0 {
        let _ = write!(text, ", {} not passed on", Size(info.undelivered_bytes));
    }
    if !info.held_by.is_empty() {
        let holders: Vec<_> = info.held_by.iter().map(ToString::to_string).collect();
        let _ = write!(text, ", held open by {}", holders.join(", "));
        if !info.held_by_complete {
            text.push_str(" and perhaps others");
        }
    }
    text
}
