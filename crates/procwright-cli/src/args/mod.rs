//! What can be said on the command line: a flag is described in one place, from
//! which its parser, the help, the manual page and the completions are made.

mod buffer;
mod run;
mod wait;

use clap::Parser;

pub(crate) use buffer::{BufferArgs, OverflowArg};
pub(crate) use run::{ReportArg, RunArgs, ScopeArg};
pub(crate) use wait::WaitArgs;

/// Runs programs and knows when they end: without deadlocks, polling or lost
/// output. When something hangs, it says who and why.
#[derive(Debug, Parser)]
#[command(
    name = "procwright",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    /// Run a program, with limits, and leave nothing of it behind.
    Run(RunArgs),
    /// Wait for processes, whoever started them, and say how they ended.
    Wait(WaitArgs),
    /// Pass stdin on to stdout, and never let the writer wait for the reader.
    Buffer(BufferArgs),
}
