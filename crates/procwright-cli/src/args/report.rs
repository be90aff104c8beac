//! The report at the end: options of every subcommand that runs programs.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// What is said at the end, and where.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Say at the end what became of it
    ///
    /// On stderr. docs/reference/result.md describes the JSON of `run`,
    /// docs/reference/command.md that of `map`.
    #[arg(
        long,
        value_name = "text|json",
        hide_possible_values = true,
        help_heading = "Report"
    )]
    pub(crate) report: Option<ReportArg>,

    /// Write that to a file (-: stdout); JSON unless said
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Report")]
    pub(crate) report_to: Option<PathBuf>,
}

impl ReportArgs {
    /// The form of the report, if there is one.
    pub(crate) fn form(&self) -> Option<ReportArg> {
        let named = self.report_to.is_some().then_some(ReportArg::Json);
        self.report.or(named)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportArg {
    Text,
    Json,
}
