//! What `procwright run` takes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use procwright::Until;
use procwright::process::{Scope, Signal};
use procwright::time::Timeout;

use crate::units;

const EXIT_CODES: &str = "\
Exit code: the program's own, 128+N if signal N ended it (by SIGINT if that did),
124 stopped by a limit, 125 wrong usage or trouble of our own, 126 not executable,
127 not found. Durations: 300ms 5s 2m 1h, bare numbers are seconds, inf.
Sizes: 64KiB 8MiB 1GiB, bare numbers are bytes.";

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

    /// Give it a terminal of its own, and pass on what it shows there
    #[arg(long)]
    pub(crate) pty: bool,

    /// Append both streams to this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// Begin each line of the log with time and stream
    #[arg(long, requires = "log")]
    pub(crate) log_times: bool,

    /// Begin a new log beyond this size: FILE becomes FILE.1, that FILE.2
    #[arg(long, value_name = "SIZE", requires = "log", value_parser = units::size)]
    pub(crate) log_size: Option<u64>,

    /// How many old logs are kept
    #[arg(long, value_name = "N", requires = "log_size", default_value = "5")]
    pub(crate) log_keep: u32,

    /// End with 125 if something is missing in the log
    #[arg(long, requires = "log")]
    pub(crate) log_strict: bool,

    /// Begin each line with time and stream
    #[arg(long)]
    pub(crate) tag: bool,

    /// Show its output only if it fails
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Keep stdout in this file, stderr in FILE.stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) keep_full: Option<PathBuf>,

    /// Show on the terminal how far it is
    #[arg(long)]
    pub(crate) progress: bool,

    /// How long it will take, for --progress
    #[arg(long, value_name = "DURATION", requires = "progress", value_parser = units::duration)]
    pub(crate) expect: Option<Duration>,

    /// Try again so often if it fails
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    pub(crate) retry: u32,

    /// Before the first retry; doubled before each further one
    #[arg(long, value_name = "DURATION", default_value = "1s", requires = "retry", value_parser = units::duration)]
    pub(crate) backoff: Duration,

    /// Run what this file says, in JSON or TOML; flags come on top
    #[arg(long, value_name = "FILE")]
    pub(crate) spec: Option<PathBuf>,

    /// Print what would be run, as --spec takes it
    #[arg(long)]
    pub(crate) dry_run: bool,

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

fn signal(text: &str) -> Result<Signal, String> {
    text.parse::<Signal>().map_err(|_| {
        "this is no signal; write a name such as TERM or SIGINT, or a number (`kill -l` lists them)"
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
