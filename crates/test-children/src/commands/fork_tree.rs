//! `fork-tree DEPTH WIDTH [--ignore-term]`: a tree of processes that pause.
//!
//! Every process above the leaves has WIDTH children. When all are up, the root
//! writes their number, itself included, and a newline. Announces the pids of all,
//! the root first; `--print-ready` puts that line before the number.

use rustix::process::getpid;

use crate::args::{Failure, Waiting};
use crate::process::{Limit, Rendezvous, STDOUT, ignore, pause_forever, spawn, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "fork-tree",
    usage: "DEPTH WIDTH [--ignore-term] [--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "a static tree of processes that pause; writes their number when all are up",
    run,
};

const LARGEST: u64 = 2_000;

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    let ignore_term = args.flag("--ignore-term");
    let depth = args.next_number("DEPTH")?;
    let width = args.next_number("WIDTH")?;
    args.finish()?;
    let others = descendants(depth, width)
        .ok_or_else(|| Failure::usage(format!("a tree has at most {LARGEST} processes")))?;
    waiting.limit.arm();
    if ignore_term {
        ignore(libc::SIGTERM)?;
    }
    let mut up = Rendezvous::new()?;
    grow(depth, width, waiting.limit, &mut up)?;
    let mut pids = vec![getpid()];
    pids.extend(up.collect(others as usize)?);
    waiting.announce(&pids)?;
    write_all(STDOUT, format!("{}\n", pids.len()).as_bytes())?;
    pause_forever()
}

fn descendants(depth: u64, width: u64) -> Option<u64> {
    let (mut level, mut total) = (1_u64, 0_u64);
    for _ in 0..depth.min(LARGEST) {
        level = level.checked_mul(width)?;
        total = total.checked_add(level)?;
    }
    (total < LARGEST && depth <= LARGEST).then_some(total)
}

fn grow(depth: u64, width: u64, limit: Limit, up: &mut Rendezvous) -> Result<(), Failure> {
    if depth == 0 {
        return Ok(());
    }
    for _ in 0..width {
        spawn(limit, || {
            grow(depth - 1, width, limit, up)?;
            up.report()?;
            pause_forever()
        })?;
    }
    Ok(())
}
