//! Options of `procwright buffer`.

use clap::{Args, ValueEnum};
use procwright::Overflow;

use crate::units;

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
125 for everything else. Sizes: 64KiB 8MiB 1GiB, bare numbers are bytes.
More: procwright man buffer";

/// Pass stdin on to stdout, and never let the writer wait for the reader.
#[derive(Debug, Args)]
#[command(after_help = BUFFER_HELP, override_usage = "procwright buffer [OPTIONS]")]
pub(crate) struct BufferArgs {
    /// Keep so much in memory
    ///
    /// 4 KiB at least. The process takes at most six blocks more, each a sixteenth of
    /// it and 256 KiB at most, and gives it back after a burst.
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = units::size)]
    pub(crate) memory: u64,

    /// Keep so much on disk [default: 1GiB, or a tenth of what is free]
    ///
    /// Only for --overflow spill; 0 for none. A full disk loses nothing: the writer
    /// waits once the memory is full.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) disk: Option<u64>,

    /// What to do when that is full
    ///
    /// spill: to disk, then the writer waits. block: the writer waits. drop-oldest:
    /// forget the oldest bytes. drop-newest: forget what comes. fail: close stdin at
    /// the first byte too many, pass on what came before, exit with 125.
    #[arg(
        long,
        value_name = "spill|block|drop-oldest|drop-newest|fail",
        default_value = "spill",
        hide_possible_values = true
    )]
    pub(crate) overflow: BufferOverflowArg,

    /// Print the figures at the end, on stderr
    ///
    /// SIGUSR1 prints them at any time.
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
            BufferOverflowArg::Spill => Overflow::Spill { memory, disk },
            BufferOverflowArg::Block => Overflow::Block { memory },
            BufferOverflowArg::DropOldest => Overflow::DropOldest { memory },
            BufferOverflowArg::DropNewest => Overflow::DropNewest { memory },
            BufferOverflowArg::Fail => Overflow::Fail { memory },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BufferOverflowArg {
    Spill,
    Block,
    DropOldest,
    DropNewest,
    Fail,
}
