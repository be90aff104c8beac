//! Options of `procwright wait`.

use std::ffi::OsString;
use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use procwright::process::Id;
use procwright::time::Timeout;
use procwright::wait::Event;

use crate::units;

const WAIT_EXIT_CODES: &str = "\
A process that is not there counts as ended. Each that ends is a line on stdout.
Exit code: 0 when those have ended that were waited for, however they ended, 3
timed out, 125 wrong usage or trouble of our own. Durations: 300ms 5s 1h30m, bare numbers are
seconds, inf. More: procwright man wait";

/// Wait for processes, whoever started them, and say how they ended.
///
/// It sleeps all the while: nothing wakes it but an end or the timeout. The
/// processes are taken hold of when the command starts; from then on their
/// numbers mean them, and no later process that happens to get the same number.
#[derive(Debug, Args)]
#[command(
    after_help = WAIT_EXIT_CODES,
    override_usage = "procwright wait [OPTIONS] [--name NAME]... [PID[:INODE]]..."
)]
pub(crate) struct WaitArgs {
    /// Until one has ended
    ///
    /// Whoever else has by then is told of too.
    #[arg(long, group = "many")]
    pub(crate) any: bool,

    /// Until all have ended (default)
    #[arg(long, group = "many")]
    pub(crate) all: bool,

    /// Until so many have ended
    ///
    /// Whoever ends beyond these is not told of.
    #[arg(long, value_name = "K", group = "many", value_parser = units::positive_count)]
    pub(crate) first: Option<NonZeroUsize>,

    /// Ended, or reaped as well [default: exited]
    ///
    /// exited: its last thread has ended, so that memory, descriptors and locks are
    /// released. reaped: its parent has collected its status too, and its number is
    /// free.
    #[arg(
        long,
        value_name = "exited|reaped",
        default_value = "exited",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) event: EventArg,

    /// Wait no longer than this
    #[arg(long, value_name = "DURATION", value_parser = units::timeout)]
    pub(crate) timeout: Option<Timeout>,

    /// All that have this name now; may be repeated
    ///
    /// The name that a process goes by, or the base name of its program's file, the
    /// whole of it.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<OsString>,

    /// Lines of JSON
    ///
    /// docs/reference/command.md shows one; wait.schema.json beside it says exactly
    /// what is in it.
    #[arg(long)]
    pub(crate) json: bool,

    /// Say by which mechanism is waited
    ///
    /// pidfd is the rule. Where none can be had others take its place, and looks
    /// counts how often a process was looked at by the clock.
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

fn process(text: &str) -> Result<Id, String> {
    text.parse::<Id>().map_err(|_| {
        "this names no process; write its number such as 1234, or number and inode such as \
         1234:5678 (--name takes names)"
            .to_owned()
    })
}
