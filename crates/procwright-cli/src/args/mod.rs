//! The command line. A flag is described in one place, from which its parser, the
//! help, the manual page and the completions are made.
//!
//! The first paragraph of a flag's comment is its line in the help, which has to
//! fit a screen; the other paragraphs are in the manual page alone.

mod buffer;
mod doctor;
mod habits;
mod limits;
mod map;
mod pipe;
mod queue;
mod report;
mod run;
mod setup;
mod surroundings;
mod usage;
mod wait;

use clap::{
    Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, ValueEnum, ValueHint,
};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use buffer::{BufferArgs, BufferOverflowArg};
pub(crate) use doctor::DoctorArgs;
pub(crate) use habits::Halt;
pub(crate) use map::MapArgs;
pub(crate) use pipe::{PipeArgs, Row, Stages};
pub(crate) use queue::{FormatArg, QueueArgs, QueueCommand, RecvArgs, SendArgs, StatArgs};
pub(crate) use report::{ReportArg, ReportArgs};
pub(crate) use run::{InputWantedArg, RunArgs};
pub(crate) use usage::print_usage_error;
pub(crate) use wait::WaitArgs;

/// Runs programs and knows when they end: without deadlocks, polling or lost
/// output. When something hangs, it says who and why.
#[derive(Debug, Parser)]
#[command(
    name = "procwright",
    version,
    disable_help_subcommand = true,
    // The help has one layout on all terminals, and wraps on narrower ones.
    max_term_width = 80
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    // Variants without a comment are described at their options: a comment here
    // would replace that description.
    Run(Box<RunArgs>),
    Map(Box<MapArgs>),
    Pipe(Box<PipeArgs>),
    Wait(WaitArgs),
    Buffer(BufferArgs),
    Queue(QueueArgs),
    Doctor(DoctorArgs),
    /// Print a manual page.
    ///
    /// As man(1) takes it: `procwright man run | man -l -`. Installed as
    /// procwright-run.1 in a directory man1 of the manual path, it is found by name.
    Man {
        /// The page of this command [default: the overview]
        #[arg(
            value_name = "run|map|pipe|wait|queue-recv|…",
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
    Map,
    Pipe,
    Wait,
    Buffer,
    Queue,
    QueueSend,
    QueueRecv,
    QueueStat,
    Doctor,
    Man,
    Completions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

/// Definition of the whole command line.
pub(crate) fn definition() -> clap::Command {
    // `--help` prints what `-h` prints: the long texts are for the manual page.
    let help = || {
        Arg::new("help")
            .short('h')
            .long("help")
            .action(ArgAction::HelpShort)
            .help("Print this")
            // Not that of the options before it.
            .help_heading(None::<&str>)
    };
    Cli::command()
        .disable_help_flag(true)
        .arg(help())
        .mut_subcommands(|command| {
            let inner = |command: clap::Command| {
                let command = command.disable_help_flag(true).arg(help());
                command.mut_args(last_counts)
            };
            inner(command).mut_subcommands(inner)
        })
}

/// Has the last count of an option that is given twice, as other tools do: a script puts its own
/// in front of those of its caller. Of two files one would silently be left out.
fn last_counts(option: Arg) -> Arg {
    let is_one = matches!(
        option.get_action(),
        ArgAction::Set | ArgAction::SetTrue | ArgAction::SetFalse
    );
    let names_a_file = matches!(
        option.get_value_hint(),
        ValueHint::AnyPath | ValueHint::FilePath
    );
    if option.is_positional() || !is_one || names_a_file {
        return option;
    }
    let id = option.get_id().clone();
    option.overrides_with(id)
}

/// Parses the command line of this process.
///
/// # Errors
/// Wrong usage; and the help or version, if asked for.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let mut definition = definition();
    let mut matches: ArgMatches = definition.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut definition))
}

/// Sets the exit codes that are no failure, if any were given, in the place of a spec's.
fn set_ok_codes(spec: &mut procwright::Spec, codes: &[u8]) {
    if !codes.is_empty() {
        spec.ok_codes = codes.iter().copied().map(i32::from).collect();
    }
}

/// The file that a program reads in the place of our stdin, which `-` would be to others.
fn stdin_file(path: PathBuf) -> Result<PathBuf, &'static str> {
    match path.as_os_str() == "-" {
        true => Err(
            "our stdin is read unless something else is said: leave --stdin out (a file of \
                     that name is ./-)",
        ),
        false => Ok(path),
    }
}

/// Options of a `run` that looks after `command` as the first process of a container: it leaves
/// the end of all others, and the time for that, to `command`.
pub(crate) fn run_as_init(command: Vec<OsString>) -> RunArgs {
    let options = [
        "procwright",
        "run",
        "--scope",
        "process",
        "--grace",
        "inf",
        "--",
    ];
    let words = options.into_iter().map(OsString::from).chain(command);
    match Cli::parse_from(words).command {
        Subcommand::Run(args) => *args,
        _ => unreachable!("these are words of run"),
    }
}
