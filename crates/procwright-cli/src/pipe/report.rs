//! What is said at the end of a pipeline.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use procwright::buffer::Figures;
use procwright::pipeline::{PipelineReport, StageReport};

use crate::args::ReportArg;
use crate::human::{HumanBytes, HumanDuration};
use crate::report_file::ReportFile;
use crate::{colour, message};

/// Writes the report to `file`, or to stderr.
///
/// # Errors
/// Those of the write.
pub(super) fn write(
    report: &PipelineReport,
    form: ReportArg,
    file: Option<ReportFile>,
) -> io::Result<()> {
    let coloured = file.is_none() && colour::on_stderr();
    let text = match form {
        ReportArg::Text => text(report, coloured),
        ReportArg::Json => format!("{}\n", report.to_json()),
    };
    match file {
        Some(file) => file.write(&text),
        None => message::print_text(text),
    }
}

/// The report for people: a table of the stages.
fn text(report: &PipelineReport, coloured: bool) -> String {
    let mut text = String::new();
    let outcome = match coloured {
        true => colour::green_or_red(&report.outcome(), report.success()),
        false => report.outcome(),
    };
    let _ = writeln!(text, "{:<11}{outcome}", "outcome");
    let _ = writeln!(text, "{:<11}{}", "time", HumanDuration(report.duration));
    let head = ["", "stage", "outcome", "judgement", "time", "CPU", "memory"];
    let mut rows = vec![head.map(str::to_owned)];
    let stages = report.stages.iter().enumerate();
    rows.extend(stages.map(|(place, stage)| row(place, stage)));
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let cells = row.iter().zip(widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    for (place, stage) in report.stages.iter().enumerate() {
        if let Some(figures) = &stage.elastic {
            let _ = writeln!(text, "{}", passed("buffer behind", place, figures));
        }
        if let Some(figures) = &stage.fan {
            let _ = writeln!(text, "{}", passed("copied to", place, figures));
        }
    }
    text
}

/// The line of the buffer behind a stage, or of what was copied to one.
fn passed(what: &str, place: usize, figures: &Figures) -> String {
    let mut text = format!(
        "{what} {}: {} in, {} out, at most {} waiting, {} of them on disk",
        place + 1,
        HumanBytes(figures.bytes_in),
        HumanBytes(figures.bytes_out),
        HumanBytes(figures.peak_bytes),
        HumanBytes(figures.disk_peak_bytes),
    );
    if figures.refused >= Duration::from_millis(1) {
        let _ = write!(text, "; full for {}", HumanDuration(figures.refused));
    }
    if figures.lag_bytes > 0 {
        let _ = write!(text, "; {} were not taken", HumanBytes(figures.lag_bytes));
    }
    text
}

/// Characters of a command that are shown at most; the JSON has all of it.
const MOST_OF_COMMAND: usize = 28;

fn row(place: usize, stage: &StageReport) -> [String; 7] {
    let report = &stage.report;
    let command = report.command();
    let shown = match command.chars().count() > MOST_OF_COMMAND {
        true => {
            let begin: String = command.chars().take(MOST_OF_COMMAND - 1).collect();
            format!("{begin}…")
        }
        false => command,
    };
    let cpu = match (report.cpu_user, report.cpu_system) {
        (Some(user), Some(system)) => HumanDuration(user + system).to_string(),
        _ => "?".to_owned(),
    };
    let memory = report
        .max_rss_bytes
        .map_or_else(|| "?".to_owned(), |bytes| HumanBytes(bytes).to_string());
    [
        (place + 1).to_string(),
        shown,
        report.status.to_string(),
        stage.judgement.name().to_owned(),
        HumanDuration(report.duration).to_string(),
        cpu,
        memory,
    ]
}
