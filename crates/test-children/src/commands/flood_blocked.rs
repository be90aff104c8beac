//! `flood-blocked --out BYTES [--chunk N]`: writes the pattern, and measures how long
//! the pipe was full.
//!
//! At the end it writes `blocked_ns=N waits=M queued_ns=Q` to stderr: the nanoseconds
//! that it waited in `poll` after a write that found the pipe full, the number of such
//! waits, and the part of that time in which it could have gone on but had no processor
//! (0 where the system does not tell). Its stdout is non-blocking meanwhile, which the
//! reader of a pipe does not notice: the two ends are separate descriptions.
//!
//! N includes Q, the time that the scheduler took to run this process again after the
//! reader had made space. N less Q is the time for which the pipe was full.

use test_children::{Pattern, Stream};

use crate::args::Failure;
use crate::measured::Measured;
use crate::process::{STDERR, STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "flood-blocked",
    usage: "--out BYTES [--chunk N]",
    about: "writes a pattern to stdout; then blocked_ns=N waits=M queued_ns=Q to stderr",
    run,
};

fn run(mut args: Args) -> Outcome {
    let end = args
        .size("--out")?
        .ok_or_else(|| Failure::usage("--out is missing"))?;
    let chunk = args.chunk()?;
    args.finish()?;
    let pattern = Pattern::new(Stream::Stdout, chunk);
    let mut out = Measured::new(STDOUT)?;
    let mut offset = 0;
    while offset < end {
        let length = (end - offset).min(chunk as u64) as usize;
        out.write_all(pattern.slice(offset, length))?;
        offset += length as u64;
    }
    out.restore()?;
    write_all(STDERR, format!("{out}\n").as_bytes())?;
    Ok(0)
}
