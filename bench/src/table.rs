//! A report as Markdown.

use std::fmt::Write as _;

use crate::report::{Ratio, Report, Row};

/// The whole report.
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &Report) -> std::fmt::Result {
    let machine = &report.machine;
    writeln!(
        text,
        "# Suite `{}`{}\n",
        report.suite,
        if report.quick {
            " (quick: not for quoting)"
        } else {
            ""
        }
    )?;
    writeln!(
        text,
        "{}, {} CPUs, {} GiB, Linux {}, huge pages {}, {}.",
        machine.cpu,
        machine.cpus,
        machine.memory_kb >> 20,
        machine.kernel,
        machine.huge_pages,
        machine.date
    )?;
    let versions: Vec<String> = machine
        .versions
        .iter()
        .map(|(name, version)| format!("{name}: {version}"))
        .collect();
    writeln!(text, "{}.\n", versions.join("; "))?;
    for (name, reason) in &report.missing {
        writeln!(text, "- **missing**: {name}: {reason}")?;
    }
    for case in report.cases() {
        writeln!(text, "\n## {case}\n")?;
        figures(text, report.rows.iter().filter(|row| row.case == case))?;
        ratios(
            text,
            report.ratios.iter().filter(|ratio| ratio.case == case),
        )?;
    }
    // What compares two cases belongs to neither: it has a heading of its own.
    let mut across: Vec<&str> = Vec::new();
    for ratio in &report.ratios {
        let case = ratio.case.as_str();
        if !report.cases().contains(&case) && !across.contains(&case) {
            across.push(case);
        }
    }
    for case in across {
        writeln!(text, "\n## {case}")?;
        ratios(
            text,
            report.ratios.iter().filter(|ratio| ratio.case == case),
        )?;
    }
    Ok(())
}

/// A line a subject, a column a metric; the first metric orders them.
fn figures<'a>(text: &mut String, rows: impl Iterator<Item = &'a Row>) -> std::fmt::Result {
    let rows: Vec<&Row> = rows.collect();
    let mut metrics: Vec<(&str, &str)> = Vec::new();
    let mut subjects: Vec<&Row> = Vec::new();
    for row in &rows {
        let metric = (row.metric.as_str(), row.unit.as_str());
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
        if metrics.first() == Some(&metric) {
            subjects.push(row);
        }
    }
    subjects.sort_by(|a, b| a.median.total_cmp(&b.median));
    if metrics.first().is_some_and(|(name, _)| *name == "rate") {
        subjects.reverse();
    }
    let heads: Vec<String> = metrics
        .iter()
        .map(|(name, unit)| format!(" {name}, {unit} |"))
        .collect();
    writeln!(
        text,
        "| subject |{} n |\n|---|{}---:|",
        heads.concat(),
        "---:|".repeat(metrics.len())
    )?;
    for Row { subject, n, .. } in subjects {
        write!(text, "| {subject} |")?;
        for metric in &metrics {
            let same = |row: &&&Row| {
                row.subject == *subject && (row.metric.as_str(), row.unit.as_str()) == *metric
            };
            match rows.iter().find(same) {
                Some(row) => {
                    let [median, min, max] = [row.median, row.min, row.max].map(significant);
                    write!(text, " {median} ({min} to {max}) |")?;
                }
                None => write!(text, " |")?,
            }
        }
        writeln!(text, " {n} |")?;
    }
    Ok(())
}

fn ratios<'a>(text: &mut String, ratios: impl Iterator<Item = &'a Ratio>) -> std::fmt::Result {
    let mut ratios = ratios.peekable();
    if ratios.peek().is_none() {
        return Ok(());
    }
    writeln!(
        text,
        "\n| ratio | median | interval | pairs |\n|---|---:|---:|---:|"
    )?;
    for ratio in ratios {
        let Ratio {
            over,
            under,
            metric,
            confidence,
            n,
            ..
        } = ratio;
        let [median, low, high] = [ratio.median, ratio.low, ratio.high].map(significant);
        let sure = confidence * 100.0;
        writeln!(
            text,
            "| {metric} of {over} / {under} | {median} | {low} to {high} ({sure:.0} %) | {n} |"
        )?;
    }
    Ok(())
}

/// Three digits that count, and no exponent.
pub(crate) fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn three_digits() {
        let shown = [1234.5, 12.345, 1.2345, 0.012_345].map(significant);
        assert_eq!(shown, ["1234", "12.3", "1.23", "0.012"]);
    }
}
