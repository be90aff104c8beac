//! Options of `procwright doctor`.

use std::time::Duration;

use clap::Args;

use crate::units;

const DOCTOR_EXIT_CODES: &str = "\
Nobody is stopped or disturbed: all comes from /proc. Without a PID: all
processes of this user. Exit code: 0 healthy, 1 hangs for certain, 2 may hang,
is stopped or slow, 3 waits for input at a terminal, 125 wrong usage or trouble.
More: procwright man doctor";

/// Say why processes hang: who waits for whom, proven, or for input.
///
/// It looks twice at all processes and at what each thread of them waits for. A
/// deadlock is proven where each of some processes sleeps, from the first look to
/// the second, in a call that only another of them could end. Where somebody who may
/// not be looked at could be the one who ends it, the deadlock is possible, and
/// what would settle it is said.
#[derive(Debug, Args)]
#[command(
    after_help = DOCTOR_EXIT_CODES,
    override_usage = "procwright doctor [OPTIONS] [PID]..."
)]
pub(crate) struct DoctorArgs {
    /// Time between the two looks [default: 200ms]
    ///
    /// Who has not run meanwhile is asleep; what a writer could write meanwhile is
    /// its rate.
    #[arg(long, value_name = "DURATION", default_value = "200ms", hide_default_value = true, value_parser = units::duration)]
    pub(crate) between: Duration,

    /// One object of JSON
    ///
    /// doctor.schema.json beside docs/reference/command.md says exactly what is in it.
    #[arg(long)]
    pub(crate) json: bool,

    /// A graph of who waits for whom, for dot(1)
    #[arg(long, conflicts_with = "json")]
    pub(crate) dot: bool,

    /// Look again and again, on a screen of its own
    ///
    /// Until q, Esc or Ctrl-C, or those of the PIDs have ended. Where stdout is no terminal, each
    /// change is another report below the last; with --json, another line.
    #[arg(long, short, conflicts_with = "dot")]
    pub(crate) watch: bool,

    /// Pause between two of these [default: 2s, or more]
    ///
    /// More where a look is so dear that looks would take 1 % of a processor: 125 times
    /// the time that the last one took of it, a minute at most.
    #[arg(long, value_name = "DURATION", requires = "watch", value_parser = units::pause)]
    pub(crate) interval: Option<Duration>,

    /// The numbers of processes; those that they have started belong to them
    #[arg(value_name = "PID", value_parser = number)]
    pub(crate) process: Vec<i32>,
}

/// The number of a process.
fn number(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        format!("this is no number of a process; `pgrep -l {text}` shows those of that name")
    })
}
