//! What can be said on the command line.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, ValueEnum};
use procwright::process::{Id, Scope, Signal};
use procwright::time::Timeout;
use procwright::wait::Event;
use procwright::{Overflow, Until};

use crate::units;

const EXIT_CODES: &str = "\
Exit code: the program's own, 128+N if signal N ended it (by SIGINT if that did),
124 stopped by a limit, 125 wrong usage or trouble of our own, 126 not executable,
127 not found. Durations: 300ms 5s 2m 1h, bare numbers are seconds, inf.
Sizes: 64KiB 8MiB 1GiB, bare numbers are bytes.";

const WAIT_EXIT_CODES: &str = "\
A process that is not there counts as ended. Each that ends is a line on stdout.
Exit code: 0 when those have ended that were waited for, 3 timed out, 125 wrong
usage or trouble of our own. Durations: 300ms 5s 2m 1h, bare numbers are seconds,
inf.";

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

/// Run a program, with limits, and leave nothing of it behind.
#[derive(Debug, Args)]
#[command(
    after_help = EXIT_CODES,
    override_usage = "procwright run [OPTIONS] [--] CMD [ARG]..."
)]
pub(crate) struct RunArgs {
    /// Stop it after this time
    #[arg(long, value_name = "DURATION", value_parser = units::timeout)]
    pub(crate) timeout: Option<Timeout>,

    /// Stop it after this time without output
    #[arg(long, value_name = "DURATION", value_parser = units::timeout)]
    pub(crate) idle_timeout: Option<Timeout>,

    /// Stop it when it writes more than this to stdout or stderr
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) limit: Option<u64>,

    /// Stop by this signal first
    #[arg(long, value_name = "SIGNAL", default_value = "TERM", value_parser = signal)]
    pub(crate) stop: Signal,

    /// From that signal to SIGKILL
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = units::duration)]
    pub(crate) grace: Duration,

    /// Stop whom: the program, its process group, or all it started
    #[arg(
        long,
        value_name = "process|group|tree",
        default_value = "tree",
        hide_possible_values = true
    )]
    pub(crate) scope: ScopeArg,

    /// Be done when its pipes are closed (eof), or when it exits
    #[arg(long, value_name = "eof|exit", hide_possible_values = true)]
    pub(crate) until: Option<UntilArg>,

    /// CMD is one line for /bin/sh -c
    #[arg(long)]
    pub(crate) shell: bool,

    /// Run it in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Set an environment variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = OsStringValueParser::new().try_map(variable))]
    pub(crate) env: Vec<(OsString, OsString)>,

    /// What it reads instead of our stdin: null, or a file
    #[arg(long, value_name = "null|FILE")]
    pub(crate) stdin: Option<PathBuf>,

    /// Say at the end what became of it
    #[arg(long, value_name = "text|json", hide_possible_values = true)]
    pub(crate) report: Option<ReportArg>,

    /// Write the report to a file and not to stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) report_to: Option<PathBuf>,

    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        hide = true
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScopeArg {
    Process,
    Group,
    Tree,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Scope {
        match scope {
            ScopeArg::Process => Scope::Process,
            ScopeArg::Group => Scope::Group,
            ScopeArg::Tree => Scope::Tree,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UntilArg {
    Eof,
    Exit,
}

impl From<UntilArg> for Until {
    fn from(until: UntilArg) -> Until {
        match until {
            UntilArg::Eof => Until::Eof,
            UntilArg::Exit => Until::Exit,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportArg {
    Text,
    Json,
}

/// Wait for processes, whoever started them, and say how they ended.
#[derive(Debug, Args)]
#[command(
    after_help = WAIT_EXIT_CODES,
    override_usage = "procwright wait [OPTIONS] [--name NAME]... [PID[:INODE]]..."
)]
pub(crate) struct WaitArgs {
    /// Until one has ended
    #[arg(long, group = "many")]
    pub(crate) any: bool,

    /// Until all have ended (default)
    #[arg(long, group = "many")]
    pub(crate) all: bool,

    /// Until so many have ended
    #[arg(long, value_name = "K", group = "many")]
    pub(crate) first: Option<NonZeroUsize>,

    /// Ended, or ended and reaped by its parent
    #[arg(
        long,
        value_name = "exited|reaped",
        default_value = "exited",
        hide_possible_values = true
    )]
    pub(crate) event: EventArg,

    /// Wait no longer than this
    #[arg(long, value_name = "DURATION", value_parser = units::timeout)]
    pub(crate) timeout: Option<Timeout>,

    /// Every process that has this name now; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<OsString>,

    /// Lines of JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Say by which mechanism is waited
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// No progress on the terminal, and no remarks
    #[arg(long)]
    pub(crate) quiet: bool,

    /// The number of a process, and its inode to mean no other
    #[arg(value_name = "PID[:INODE]", value_parser = process)]
    pub(crate) process: Vec<Id>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventArg {
    Exited,
    Reaped,
}

impl From<EventArg> for Event {
    fn from(event: EventArg) -> Event {
        match event {
            EventArg::Exited => Event::Exited,
            EventArg::Reaped => Event::Reaped,
        }
    }
}

fn signal(text: &str) -> Result<Signal, String> {
    text.parse::<Signal>().map_err(|_| {
        "this is no signal; write a name such as TERM or SIGINT, or a number (`kill -l` lists them)"
            .to_owned()
    })
}

fn process(text: &str) -> Result<Id, String> {
    text.parse::<Id>().map_err(|_| {
        "this names no process; write its number such as 1234, or number and inode such as \
         1234:5678 (--name takes names)"
            .to_owned()
    })
}

fn variable(text: OsString) -> Result<(OsString, OsString), String> {
    let bytes = text.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(0) => Err("the name before '=' is empty".into()),
        Some(at) => Ok((
            OsStr::from_bytes(&bytes[..at]).to_owned(),
            OsString::from_vec(bytes[at + 1..].to_vec()),
        )),
        None => Err("there is no '='; write NAME=VALUE".into()),
    }
}

const BUFFER_HELP: &str = "\
    cmd1 | procwright buffer | cmd2

What cmd2 has not taken yet is kept in memory, then in files without a name in
/var/tmp, and only when those are full cmd1 has to wait. A full disk loses nothing.
SIGUSR1 prints the figures at once.

When full (--overflow):
  spill        disk, then cmd1 waits (lossless, the default)
  block        cmd1 waits when the memory is full (lossless)
  drop-oldest  keep the latest bytes, forget the oldest
  drop-newest  keep the first bytes, forget what comes
  fail         take no more, pass on what was taken, and exit with 125
Where bytes were dropped nothing is put into the output: they are counted, and
the first time is told on stderr.

PROCWRIGHT_SPOOL_DIR names another directory, PROCWRIGHT_SPOOL=0 uses no disk.
Exit code: 0 when all has been passed on, death by SIGPIPE if cmd2 took no more,
125 for everything else. Sizes: 64KiB 8MiB 1GiB, bare numbers are bytes.";

/// Pass stdin on to stdout, and never let the writer wait for the reader.
#[derive(Debug, Args)]
#[command(after_help = BUFFER_HELP, override_usage = "procwright buffer [OPTIONS]")]
pub(crate) struct BufferArgs {
    /// Keep so much in memory
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = units::size)]
    pub(crate) memory: u64,

    /// Keep so much on disk [default: 1GiB, or a tenth of what is free]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) disk: Option<u64>,

    /// What to do when that is full
    #[arg(
        long,
        value_name = "spill|block|drop-oldest|drop-newest|fail",
        default_value = "spill",
        hide_possible_values = true
    )]
    pub(crate) overflow: OverflowArg,

    /// Print the figures at the end, on stderr
    #[arg(long)]
    pub(crate) stats: bool,

    /// Say nothing but errors
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl BufferArgs {
    pub(crate) fn policy(&self) -> Overflow {
        let (memory, disk) = (self.memory, self.disk);
        match self.overflow {
            OverflowArg::Spill => Overflow::Spill { memory, disk },
            OverflowArg::Block => Overflow::Block { memory },
            OverflowArg::DropOldest => Overflow::DropOldest { memory },
            OverflowArg::DropNewest => Overflow::DropNewest { memory },
            OverflowArg::Fail => Overflow::Fail { memory },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverflowArg {
    Spill,
    Block,
    DropOldest,
    DropNewest,
    Fail,
}
