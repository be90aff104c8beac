//! What a suite found, as JSON.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::machine::Machine;
use crate::stats::{self, Interval, Summary};

/// Everything that a suite found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub suite: String,
    /// Whether it was cut short: figures to look at, not to quote.
    pub quick: bool,
    /// Where it ran, and with which versions.
    pub machine: Machine,
    /// Subjects that could not be run, with the reason.
    pub missing: BTreeMap<String, String>,
    /// The figures.
    pub rows: Vec<Row>,
    /// Quotients of figures from the same rounds.
    pub ratios: Vec<Ratio>,
}

/// One figure of one subject in one case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The suite.
    pub suite: String,
    /// The case.
    pub case: String,
    /// Who was measured.
    pub subject: String,
    /// What was measured.
    pub metric: String,
    /// In which unit.
    pub unit: String,
    /// The middle figure.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many there are.
    pub n: usize,
}

/// The median of quotients taken round by round.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// The case.
    pub case: String,
    /// What was measured.
    pub metric: String,
    /// Whose figure is above the line.
    pub over: String,
    /// Whose is below.
    pub under: String,
    /// The middle quotient.
    pub median: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How sure the interval is.
    pub confidence: f64,
    /// How many pairs there are.
    pub n: usize,
}

impl Report {
    /// Nothing found yet.
    pub fn new(suite: &str, quick: bool, machine: Machine) -> Report {
        Report {
            suite: suite.to_owned(),
            quick,
            machine,
            missing: BTreeMap::new(),
            rows: Vec::new(),
            ratios: Vec::new(),
        }
    }

    /// As JSON, into that file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        std::fs::write(file, json)
    }

    /// Adds a row, if there are figures.
    pub fn row(&mut self, case: &str, subject: &str, metric: &str, unit: &str, figures: &[f64]) {
        let Some(Summary {
            median,
            min,
            max,
            n,
        }) = stats::summary(figures)
        else {
            return;
        };
        let [suite, case, subject] = [&self.suite, case, subject].map(str::to_owned);
        let (metric, unit) = (metric.to_owned(), unit.to_owned());
        self.rows.push(Row {
            suite,
            case,
            subject,
            metric,
            unit,
            median,
            min,
            max,
            n,
        });
    }

    /// Adds a ratio, if there are pairs.
    pub fn ratio(&mut self, case: &str, metric: &str, over: &str, under: &str, pairs: &[f64]) {
        let Some(Interval {
            median,
            low,
            high,
            confidence,
            n,
        }) = stats::interval(pairs)
        else {
            return;
        };
        let [case, metric, over, under] = [case, metric, over, under].map(str::to_owned);
        self.ratios.push(Ratio {
            case,
            metric,
            over,
            under,
            median,
            low,
            high,
            confidence,
            n,
        });
    }

    /// The cases, in the order in which they ran.
    pub fn cases(&self) -> Vec<&str> {
        let mut cases: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !cases.contains(&row.case.as_str()) {
                cases.push(&row.case);
            }
        }
        cases
    }

    /// The rows of one case and metric, the smallest median first.
    pub fn figures(&self, case: &str, metric: &str) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.case == case && row.metric == metric)
            .collect();
        rows.sort_by(|a, b| a.median.total_cmp(&b.median));
        rows
    }
}
