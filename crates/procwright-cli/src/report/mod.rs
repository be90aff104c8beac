//! The report at the end of a run.

mod text;

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use procwright::{Holder, Report};
use serde_json::{Value, json};

use crate::args::ReportArg;
use crate::colour;
use crate::run::output::LogFigures;

/// What the command has to say beside the report of the library.
#[derive(Debug)]
pub(crate) struct Own {
    /// How often the program was run; the report is that of the last time.
    pub(crate) attempts: u64,
    /// From the first start to the last end, pauses between included.
    pub(crate) total: Duration,
    /// The signal to us for which it was stopped.
    pub(crate) signal: Option<i32>,
    pub(crate) log: Option<LogFigures>,
    /// Who goes on after the end, in the background.
    pub(crate) left: Vec<Holder>,
}

/// Writes the report to `file`, or to stderr.
///
/// # Errors
/// Those of the write.
pub(crate) fn write(
    report: &Report,
    own: &Own,
    form: ReportArg,
    file: Option<File>,
) -> io::Result<()> {
    let coloured = file.is_none() && colour::on_stderr();
    let text = match form {
        ReportArg::Text => text::text(report, own, coloured),
        ReportArg::Json => format!("{}\n", json(report, own)),
    };
    match file {
        Some(mut file) => file.write_all(text.as_bytes()),
        None => io::stderr().write_all(text.as_bytes()),
    }
}

/// For programs; see `docs/reference/result.schema.json`.
fn json(report: &Report, own: &Own) -> Value {
    let mut value = report.to_json_with(None, None, None);
    value["attempts"] = own.attempts.into();
    value["left"] = own
        .left
        .iter()
        .map(|left| json!({"pid": left.pid, "name": left.name}))
        .collect();
    value["total_s"] = own.total.as_secs_f64().into();
    value["log"] = own.log.as_ref().map_or(Value::Null, |log| {
        json!({
            "path": procwright::text_to_json(&log.path),
            "bytes": log.bytes,
            "lost_bytes": log.lost_bytes,
            "rotations": log.rotations,
        })
    });
    value
}
