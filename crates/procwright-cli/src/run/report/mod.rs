//! The report at the end of a run.

mod command_report;
mod text;

use std::io;

use procwright::Report;
use serde_json::{Value, json};

use crate::args::ReportArg;
use crate::report_file::ReportFile;
use crate::{colour, message};

pub(super) use command_report::CommandReport;

/// Writes the report to `file`, or to stderr.
///
/// # Errors
/// Those of the write.
pub(super) fn write(
    report: &Report,
    own: &CommandReport,
    form: ReportArg,
    file: Option<ReportFile>,
) -> io::Result<()> {
    let coloured = file.is_none() && colour::on_stderr();
    let text = match form {
        ReportArg::Text => text::text(report, own, coloured),
        ReportArg::Json => format!("{}\n", json(report, own)),
    };
    match file {
        Some(file) => file.write(&text),
        None => message::print_text(text),
    }
}

/// The report for programs; see `docs/reference/result.schema.json`.
fn json(report: &Report, own: &CommandReport) -> Value {
    let mut value = report.to_json_with(None, None, None);
    value["attempts"] = own.attempts.into();
    value["left"] = own.left.as_ref().map_or(Value::Null, |left| {
        left.iter()
            .map(|left| json!({"pid": left.pid, "name": left.name}))
            .collect()
    });
    value["input_wanted"] = own.asked.as_ref().map_or(Value::Null, |asked| {
        let waiting = &asked.waiting;
        json!({
            "pid": waiting.pid,
            "name": waiting.name,
            "terminal": waiting.terminal,
            "text": waiting.text,
            "prompt": asked.prompt,
        })
    });
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
