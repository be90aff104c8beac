//! Options of `procwright run`, and what those of the program set in its [`Spec`].
//!
//! A new option is a field of [`RunArgs`] and a line in [`RunArgs::apply_to`], or in
//! [`RunArgs::command_options`] if it is the command's own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use procwright::{Spec, Stdin};

use super::habits::RunHabitArgs;
use super::limits::LimitArgs;
use super::report::ReportArgs;
use super::surroundings::SurroundingsArgs;
use crate::units;

const AFTER: &str = "\
Exit code: the program's own, 128+N if signal N ended it (SIGINT ends us too),
124 stopped by a limit, 125 wrong usage or trouble of our own, 126 not
executable, 127 not found. Durations: 300ms 5s 1h30m, a number is seconds, inf.
Sizes: 64KiB 8MiB 1GiB, a number is bytes. More: procwright man run, which has
--block-signal --ignore-signal --default-signal --cpu-affinity --sched-policy
--ionice --oom-score-adj --cgroup --chroot --no-new-privs --new-keyring";

/// Run a program, with limits that are for all that it starts.
///
/// A run that a limit or a signal ends leaves nothing of it behind. One that ends by
/// itself leaves what it has put in the background.
///
/// The program gets the command's own stdin, stdout and stderr and stays in its
/// process group and on its terminal: prompts, colours, Ctrl-C and Ctrl-Z work
/// as without it. A pipe is put between only for an option that has to see the
/// output; it then passes through at once, but the program sees a pipe.
///
/// Everything after CMD belongs to the program; -- is needed only if CMD begins
/// with a dash.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER,
    override_usage = "procwright run [OPTIONS] [--] CMD [ARG]..."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Run it again so often if it fails
    ///
    /// It fails by an exit code that is not 0, by a signal, and by a limit
    /// (--timeout, --idle-timeout, --limit). What could not be started is not
    /// tried again, nor what SIGINT ended or a signal to us. The exit code is that
    /// of the last attempt. A file of --stdin is opened anew each time; an
    /// inherited stdin goes on where it stands.
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        hide_default_value = true,
        value_parser = units::count,
        help_heading = "Limits"
    )]
    pub(crate) retry: u32,

    /// Wait before a retry, then double [default: 1s]
    ///
    /// Doubled before each further retry, up to five minutes (or to the duration
    /// given, if that is longer). A signal ends the wait and the command at once.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1s",
        hide_default_value = true,
        requires = "retry",
        value_parser = units::duration,
        help_heading = "Limits"
    )]
    pub(crate) backoff: Duration,

    /// Its exit codes that are no failure besides 0
    ///
    /// The exit code is 0 then. As in --ok 1 for a grep that may find nothing, or a diff;
    /// --ok 1,2 for two codes, or --ok twice.
    #[arg(
        long,
        value_name = "CODE",
        value_delimiter = ',',
        help_heading = "Limits"
    )]
    pub(crate) ok: Vec<u8>,

    /// CMD is one line for /bin/sh -c
    #[arg(long, help_heading = "Program")]
    pub(crate) shell: bool,

    #[command(flatten, next_help_heading = "Program")]
    pub(crate) surroundings: SurroundingsArgs,

    /// What it reads instead of our stdin
    ///
    /// null is /dev/null; a file of that name is ./null.
    #[arg(
        long,
        value_name = "null|FILE",
        value_hint = ValueHint::FilePath,
        value_parser = PathBufValueParser::new().try_map(super::stdin_file),
        help_heading = "Program"
    )]
    pub(crate) stdin: Option<PathBuf>,

    /// Give it a terminal of its own
    ///
    /// What it shows there is passed on. It colours and buffers as on a terminal
    /// while its output is logged, limited or tagged.
    #[arg(long, help_heading = "Program")]
    pub(crate) pty: bool,

    /// Take it from JSON or TOML; flags come on top
    ///
    /// The form is that of --dry-run and of the library; docs/reference/spec.md
    /// has all members. A name that ends in .json or .toml says which; otherwise
    /// what begins with a brace is JSON. - is stdin, and the program's own is then
    /// null unless something else is said. A CMD on the command line replaces that
    /// of the file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) spec: Option<PathBuf>,

    /// Print it as --spec takes it, start nothing
    ///
    /// As JSON, on stdout. What can be found wrong without a start is an error.
    /// Options that are the command's own and not the program's (--retry, --log,
    /// --tag, --report and the like) are no part of it, and are named on stderr.
    #[arg(long, help_heading = "Program")]
    pub(crate) dry_run: bool,

    /// Begin each line with time, NAME if given, and stream
    ///
    /// With a NAME the lines of several runs on one terminal are told apart.
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = "Output"
    )]
    pub(crate) tag: Option<OsString>,

    /// Show its output only if it fails
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Show on the terminal how far it is
    #[arg(long, help_heading = "Output")]
    pub(crate) progress: bool,

    /// How long it will take, for --progress
    #[arg(
        long,
        value_name = "DURATION",
        requires = "progress",
        value_parser = units::duration,
        help_heading = "Output"
    )]
    pub(crate) expect: Option<Duration>,

    /// Keep stdout in FILE, stderr in FILE.stderr
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) keep_full: Option<PathBuf>,

    /// Append both streams to this file as well
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,

    /// Begin each line of the log with time and stream
    #[arg(long, requires = "log", help_heading = "Output")]
    pub(crate) log_times: bool,

    /// Begin a new log beyond this size
    ///
    /// FILE becomes FILE.1, that FILE.2 and so on.
    #[arg(
        long,
        value_name = "SIZE",
        requires = "log",
        value_parser = units::size,
        help_heading = "Output"
    )]
    pub(crate) log_size: Option<u64>,

    /// How many old logs are kept
    #[arg(
        long,
        value_name = "N",
        requires = "log_size",
        default_value = "5",
        value_parser = units::count,
        help_heading = "Output"
    )]
    pub(crate) log_keep: u32,

    /// Exit with 125 if the log is not whole
    #[arg(long, requires = "log", help_heading = "Output")]
    pub(crate) log_strict: bool,

    #[command(flatten)]
    pub(crate) report: ReportArgs,

    /// Say then why it has not ended
    ///
    /// What `procwright doctor` says of it: who waits for whom, whether that is a
    /// deadlock, whether it waits for input. It goes on.
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Report")]
    pub(crate) explain_after: Option<Duration>,

    /// Write that, and why a limit came, to a file
    ///
    /// For --explain-after, --timeout and --idle-timeout, of a second or more: what
    /// its processes wait for is looked at shortly before the stop. A file that is
    /// there is emptied at the start, and one that was made goes again if there was
    /// nothing to explain.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Report")]
    pub(crate) explain_to: Option<PathBuf>,

    /// When it wants input: tell, or fail
    ///
    /// tell says on stderr who waits for input, on its terminal or on a stdin that
    /// somebody holds, and with which prompt, once for each wait; fail stops the
    /// program then as well, with exit code 124. Pipes are put between to see when
    /// its output pauses: it is looked at 0.1 s after that, and in a silence again
    /// after twice as long each time.
    #[arg(
        long,
        value_name = "HOW",
        hide_possible_values = true,
        help_heading = "Report"
    )]
    pub(crate) input_wanted: Option<InputWantedArg>,

    #[command(flatten)]
    pub(crate) habits: RunHabitArgs,

    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required_unless_present = "spec",
        trailing_var_arg = true,
        hide = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// The program and its arguments, if the command line names one.
    pub(crate) fn argv(&self) -> Option<Vec<OsString>> {
        let line = self.command.first()?;
        Some(match self.shell {
            true => Spec::shell(line).argv,
            false => self.command.clone(),
        })
    }

    /// Sets in `spec` what the options say about the program.
    pub(crate) fn apply_to(&self, spec: &mut Spec) {
        // The pattern names all fields, so that the compiler asks about a new one.
        let RunArgs {
            limits,
            surroundings,
            stdin,
            pty,
            keep_full,
            ok,
            habits,
            // The parts of `argv`, and where the spec comes from or goes to.
            shell: _,
            command: _,
            spec: _,
            dry_run: _,
            // Options of the command itself, see `command_options`.
            retry: _,
            backoff: _,
            tag: _,
            quiet: _,
            progress: _,
            expect: _,
            log: _,
            log_times: _,
            log_size: _,
            log_keep: _,
            log_strict: _,
            report: _,
            explain_after: _,
            explain_to: _,
            input_wanted: _,
        } = self;
        if let Some(argv) = self.argv() {
            spec.argv = argv;
        }
        if let Some(path) = stdin {
            spec.stdin = match path.as_os_str() == "null" {
                true => Stdin::Null,
                false => Stdin::File(path.clone()),
            };
        }
        limits.apply_to(spec);
        super::set_ok_codes(spec, ok);
        habits.apply_to(spec);
        if *pty {
            spec.pty.get_or_insert_default();
        }
        surroundings.apply_to(spec);
        if let Some(path) = keep_full {
            spec.keep_full = Some(path.clone());
        }
    }

    /// Options that were given and that a [`Spec`] has no member for. Those that
    /// refine one of these (`--backoff`, `--expect`, `--log-size`) are left out.
    pub(crate) fn command_options(&self) -> Vec<&'static str> {
        let options = [
            ("--retry", self.retry > 0),
            ("--tag", self.tag.is_some()),
            ("--quiet", self.quiet),
            ("--progress", self.progress),
            ("--log", self.log.is_some()),
            ("--report", self.report.report.is_some()),
            ("--report-to", self.report.report_to.is_some()),
            ("--explain-after", self.explain_after.is_some()),
            ("--explain-to", self.explain_to.is_some()),
            ("--input-wanted", self.input_wanted.is_some()),
        ];
        let given = options.into_iter().filter(|(_, given)| *given);
        given.map(|(name, _)| name).collect()
    }
}

/// What is done about a program that waits for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputWantedArg {
    Tell,
    Fail,
}
