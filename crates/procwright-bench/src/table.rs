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
    writeln!(text, "\n## Large against small parent\n")?;
    ratios(
        text,
        report
            .ratios
            .iter()
            .filter(|ratio| ratio.over.ends_with("/large")),
    )
}

fn figures<'a>(text: &mut String, rows: impl Iterator<Item = &'a Row>) -> std::fmt::Result {
    writeln!(
        text,
        "| subject | metric | median | min | max | n |\n|---|---|---:|---:|---:|---:|"
    )?;
    let mut rows: Vec<&Row> = rows.collect();
    rows.sort_by(|a, b| {
        a.metric
            .cmp(&b.metric)
            .reverse()
            .then(a.median.total_cmp(&b.median))
    });
    for row in rows {
        let Row {
            subject,
            metric,
            unit,
            n,
            ..
        } = row;
        let [median, min, max] = [row.median, row.min, row.max].map(significant);
        writeln!(
            text,
            "| {subject} | {metric}, {unit} | {median} | {min} | {max} | {n} |"
        )?;
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
