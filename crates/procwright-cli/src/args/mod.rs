//! What can be said on the command line: a flag is described in one place, from
//! which its parser, the help, the manual page and the completions are made.
//!
//! The first paragraph of a flag's comment is its line in the help, which has to
//! fit a screen; the others stand in the manual page alone.

mod buffer;
mod queue;
mod run;
#[cfg(test)]
mod tests;
mod wait;
mod wrong;

use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, ValueEnum};

pub(crate) use buffer::{BufferArgs, OverflowArg};
pub(crate) use queue::{FormatArg, QueueArgs, QueueCommand, RecvArgs, SendArgs, StatArgs};
pub(crate) use run::{ReportArg, RunArgs};
pub(crate) use wait::WaitArgs;
pub(crate) use wrong::wrong_usage;

/// Runs programs and knows when they end: without deadlocks, polling or lost
/// output. When something hangs, it says who and why.
#[derive(Debug, Parser)]
#[command(
    name = "procwright",
    version,
    disable_help_subcommand = true,
    // One layout everywhere; on a narrower terminal the text is wrapped.
    max_term_width = 80
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    // What these do is said where their options are; said here, it would
    // stand for all of that.
    Run(Box<RunArgs>),
    Wait(WaitArgs),
    Buffer(BufferArgs),
    Queue(QueueArgs),
    /// Print a manual page.
    ///
    /// As man(1) takes it: `procwright man run | man -l -`. Installed as
    /// procwright-run.1 in a directory man1 of the manual path, it is found by name.
    Man {
        /// The page of this command [default: the overview]
        #[arg(
            value_name = "run|wait|buffer|queue-recv|…",
            hide_possible_values = true
        )]
        page: Option<PageArg>,
    },
    /// Print the completions for a shell.
    ///
    /// To be sourced by bash, or saved where the shell looks for completions:
    /// procwright in ~/.local/share/bash-completion/completions, _procwright in a
    /// directory of fpath of zsh, procwright.fish in ~/.config/fish/completions.
    Completions {
        /// The shell that reads them
        #[arg(value_name = "bash|zsh|fish", hide_possible_values = true)]
        shell: ShellArg,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageArg {
    Run,
    Wait,
    Buffer,
    Queue,
    QueueSend,
    QueueRecv,
    QueueStat,
    Man,
    Completions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

/// The definition of all of it.
pub(crate) fn definition() -> clap::Command {
    // `--help` prints what `-h` does: the long texts are for the manual page.
    let help = || {
        Arg::new("help")
            .short('h')
            .long("help")
            .action(ArgAction::HelpShort)
            .help("Print this")
    };
    Cli::command()
        .disable_help_flag(true)
        .arg(help())
        .mut_subcommands(|command| {
            let inner = |command: clap::Command| command.disable_help_flag(true).arg(help());
            inner(command).mut_subcommands(inner)
        })
}

/// What was said.
///
/// # Errors
/// Wrong usage; and the help or version, if asked for.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let mut definition = definition();
    let mut matches: ArgMatches = definition.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut definition))
}
