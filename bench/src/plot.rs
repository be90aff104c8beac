//! A report as a picture: a bar a subject, a line from its least to its greatest
//! figure.

use std::fmt::Write as _;

use crate::report::{Report, Row};
use crate::table::significant;

const WIDTH: f64 = 960.0;
const LABELS: f64 = 220.0;
const FIGURES: f64 = 110.0;
const LINE: f64 = 18.0;
const HEAD: f64 = 40.0;

/// The metrics that are drawn; each case has one of them at least.
const METRICS: [&str; 13] = [
    "time",
    "rate",
    "p50",
    "last",
    "switches",
    "set-up",
    "exit",
    "look",
    "held up",
    "child's time",
    "calls",
    "sender's",
    "to send",
];

/// The whole report.
pub fn svg(report: &Report) -> String {
    let mut body = String::new();
    let mut top = 10.0;
    for case in report.cases() {
        for metric in METRICS {
            let rows = report.figures(case, metric);
            if !rows.is_empty() {
                // Writing into a String cannot fail.
                let _ = panel(&mut body, top, case, &rows);
                top += HEAD + LINE * rows.len() as f64;
            }
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

fn panel(body: &mut String, top: f64, case: &str, rows: &[&Row]) -> std::fmt::Result {
    let (metric, unit) = rows
        .first()
        .map_or(("", ""), |row| (row.metric.as_str(), row.unit.as_str()));
    let most = rows
        .iter()
        .map(|row| row.max)
        .fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABELS - FIGURES) / most;
    writeln!(
        body,
        "<text x=\"10\" y=\"{}\" font-weight=\"bold\">{}: {metric} ({unit})</text>",
        top + 20.0,
        escaped(case)
    )?;
    for (index, row) in rows.iter().enumerate() {
        let y = top + HEAD - 10.0 + LINE * index as f64;
        let middle = y + LINE / 2.0;
        let [least, median, greatest] = [row.min, row.median, row.max].map(|x| LABELS + x * scale);
        writeln!(
            body,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LABELS}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>\
             <path d=\"M{least:.1} {middle:.1}H{greatest:.1}\" stroke=\"#333\"/>\
             <text x=\"{:.1}\" y=\"{}\">{}</text>",
            LABELS - 8.0,
            middle + 4.0,
            escaped(&row.subject),
            y + 2.0,
            median - LABELS,
            LINE - 4.0,
            colour(&row.subject),
            greatest + 6.0,
            middle + 4.0,
            significant(row.median)
        )?;
    }
    Ok(())
}

fn colour(subject: &str) -> &'static str {
    match subject {
        ours if ours.contains("procwright") => "#2a7de1",
        // Of the suite `liveness`, whose subjects are ways and not programs.
        ours if ours.starts_with("alive") => "#2a7de1",
        "wait" | "wait process" => "#2a7de1",
        floor if floor.starts_with("floor") || floor == "discard" => "#bbbbbb",
        floor if floor.starts_with("plain load") => "#bbbbbb",
        "rtrb-threads" => "#bbbbbb",
        _ => "#e0a030",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
