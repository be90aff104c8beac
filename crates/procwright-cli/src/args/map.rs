//! Options of `procwright map`, and what those of its commands set in their [`Spec`].

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use procwright::Spec;
use procwright::time::Timeout;

use super::habits::{HabitArgs, Halt};
use super::limits::LimitArgs;
use super::report::ReportArgs;
use super::surroundings::SurroundingsArgs;
use crate::units;

const AFTER: &str = "\
As in: procwright map -j 8 gzip -9 {} ::: *.log
       find . -name '*.png' -print0 | procwright map -0 --tag optipng {}

An item takes the place of {} in CMD, or comes behind CMD if that has none.
{.} is the item without its extension, {/} without its directory, {//} its
directory, {/.} neither, {#} its number from 1. There is no shell. Behind
several ::: stand lists, of which each item meets each: {1} {2} are theirs.
Exit code: 0 all well, 1 some failed, 124 the deadline, 125 wrong usage or
trouble of our own; a signal ends us as well. More: procwright man map, which
has --block-signal --ignore-signal --default-signal --cpu-affinity
--sched-policy --ionice --oom-score-adj --cgroup --chroot --no-new-privs
--new-keyring";

/// Run a command for each of many items, so many at a time.
///
/// Items are the words behind :::, or else the lines of a file or of stdin, which
/// are read as there is room for their commands. An empty line is none.
///
/// The output of a command is shown in one piece when it has ended, with --live
/// or --tag line by line while it comes. A command reads nothing: its stdin is
/// /dev/null.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER,
    override_usage = "procwright map [OPTIONS] [--] CMD [ARG]... [::: ITEM...]"
)]
pub(crate) struct MapArgs {
    /// Run so many at a time [default: processors]
    ///
    /// A number, or as in GNU parallel 50% of the processors, +2 for two more than there
    /// are, -1 for one less.
    #[arg(
        long,
        short = 'j',
        short_alias = 'P',
        aliases = ["jobs", "max-procs"],
        value_name = "N",
        value_parser = units::parallel,
        allow_negative_numbers = true,
        help_heading = "Commands"
    )]
    pub(crate) parallel: Option<NonZeroUsize>,

    /// Read items from FILE (-: stdin)
    ///
    /// A line each, as from stdin. :::: FILE behind the command does it as well. With
    /// several lists of items each item of one meets each of the others.
    #[arg(
        long,
        short = 'a',
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Commands"
    )]
    pub(crate) arg_file: Vec<PathBuf>,

    /// Items that are read end with NUL, not newline
    #[arg(long, short = '0', help_heading = "Commands")]
    pub(crate) null: bool,

    /// Put lists of items side by side
    ///
    /// The first command gets the first item of each list, and so on; the lists have to be
    /// equally long, and an empty line of a file is an item. Without this each item of a list
    /// meets each of the others. :::+ and ::::+ put one list beside the one before it.
    #[arg(long, alias = "xapply", help_heading = "Commands")]
    pub(crate) link: bool,

    /// Have TEXT stand for the item, and no braces
    #[arg(short = 'I', value_name = "TEXT", help_heading = "Commands")]
    pub(crate) placeholder: Option<OsString>,

    /// Print the commands, start nothing
    ///
    /// In the order of their items, as a shell takes them.
    #[arg(
        long,
        alias = "dryrun",
        conflicts_with_all = ["journal", "report", "report_to"],
        help_heading = "Commands"
    )]
    pub(crate) dry_run: bool,

    #[command(flatten, next_help_heading = "Commands")]
    pub(crate) surroundings: SurroundingsArgs,

    /// Stop all after this time
    ///
    /// Nothing is started any more, what runs is stopped, and the exit code is 124.
    #[arg(long, value_name = "DURATION", value_parser = units::time_limit, help_heading = "Limits")]
    pub(crate) deadline: Option<Timeout>,

    /// Stop all when so many have failed
    ///
    /// Nothing is started any more, and what runs is stopped. Without this all are run,
    /// whatever becomes of the others.
    #[arg(long, value_name = "N", value_parser = units::positive_count, help_heading = "Limits")]
    pub(crate) stop_after_failures: Option<NonZeroUsize>,

    /// Exit codes that are no failure besides 0
    ///
    /// As in --ok 1 for a grep that may find nothing; --ok 1,2 for two codes, or --ok twice.
    #[arg(
        long,
        value_name = "CODE",
        value_delimiter = ',',
        help_heading = "Limits"
    )]
    pub(crate) ok: Vec<u8>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Show lines as they come
    ///
    /// Whole lines: one that has not ended waits for its end, 64 KiB at most. Not with
    /// --ordered, which shows an output when its command has ended.
    #[arg(long, aliases = ["line-buffer", "linebuffer", "lb"], help_heading = "Output")]
    pub(crate) live: bool,

    /// So, with the item or NAME in front of each
    ///
    /// NAME may have the placeholders of CMD, as in --tag={/}. With --ordered lines are
    /// shown when their command has ended.
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "{}",
        help_heading = "Output"
    )]
    pub(crate) tag: Option<OsString>,

    /// Show outputs in the order of the items
    ///
    /// What has overtaken a slower command waits for it, in memory; when 100 commands
    /// do, no more are started.
    #[arg(
        long,
        short_alias = 'k',
        alias = "keep-order",
        conflicts_with = "live",
        help_heading = "Output"
    )]
    pub(crate) ordered: bool,

    /// Show the output of failures alone
    #[arg(long, conflicts_with_all = ["live", "tag", "tagstring"], help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Show on the terminal how far it is
    #[arg(
        long,
        aliases = ["bar", "eta"],
        // parallel takes both at a time.
        overrides_with = "progress",
        help_heading = "Output"
    )]
    pub(crate) progress: bool,

    /// Note in FILE what was started and has ended
    ///
    /// In lines of JSON, which docs/reference/map-journal.md describes. They survive the
    /// death of this command, also by SIGKILL. A file with a journal in it is refused
    /// without --resume.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Journal")]
    pub(crate) journal: Option<PathBuf>,

    /// Leave out what the journal says was done
    ///
    /// A command is known by its words, directory and variables, whatever the order of
    /// the items. What was started and has no known end is told of and not run, and the
    /// exit code is 1.
    #[arg(long, requires = "journal", help_heading = "Journal")]
    pub(crate) resume: bool,

    /// Run again what has failed
    #[arg(long, requires = "resume", help_heading = "Journal")]
    pub(crate) rerun_failed: bool,

    /// Run again what has no known end
    ///
    /// It may have done its work or a part of it, and may even still be running.
    #[arg(long, requires = "resume", help_heading = "Journal")]
    pub(crate) rerun_unknown: bool,

    /// Have the journal survive a power failure
    ///
    /// Each line is on the disk before anything follows from it.
    #[arg(long, requires = "journal", help_heading = "Journal")]
    pub(crate) sync: bool,

    /// Write GNU parallel's --joblog as well
    #[arg(
        long,
        value_name = "FILE",
        requires = "journal",
        value_hint = ValueHint::FilePath,
        help_heading = "Journal"
    )]
    pub(crate) joblog: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) report: ReportArgs,

    #[command(flatten)]
    pub(crate) habits: HabitArgs,

    /// The command, and its items behind :::
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        hide = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}

impl MapArgs {
    /// What stands in front of each line.
    pub(crate) fn tag(&self) -> Option<&OsStr> {
        let tag = self.tag.as_ref().or(self.habits.tagstring.as_ref());
        tag.map(OsString::as_os_str)
    }

    /// When failures end it, and how.
    pub(crate) fn halt(&self) -> Halt {
        match self.stop_after_failures {
            Some(failures) => Halt::Now(failures),
            None => self.habits.halt.unwrap_or(Halt::Never),
        }
    }

    /// Sets in `spec` what the options say about each command.
    pub(crate) fn apply_to(&self, spec: &mut Spec) {
        self.limits.apply_to(spec);
        super::set_ok_codes(spec, &self.ok);
        self.surroundings.apply_to(spec);
    }
}
