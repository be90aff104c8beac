//! `flood-blocked --out BYTES [--chunk N]`: writes the pattern, and measures how long
//! the pipe was full.
//!
//! At the end it writes `blocked_ns=N waits=M` to stderr: the nanoseconds that it
//! waited in `poll` after a write that found the pipe full, and how many such
//! waits there were. It makes its stdout non-blocking meanwhile, which the reader
//! of a pipe does not notice, for the two ends are separate descriptions.
//!
//! The time includes what the scheduler took to run this process again after the
//! reader had made space: at most some such delay a wait more than the time for
//! which the pipe was full.

use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use test_children::{Pattern, Stream};

use crate::args::Failure;
use crate::process::{STDERR, STDOUT, wait_writable, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "flood-blocked",
    usage: "--out BYTES [--chunk N]",
    about: "writes a pattern to stdout; then blocked_ns=N waits=M to stderr",
    run,
};

fn run(mut args: Args) -> Outcome {
    let end = args
        .size("--out")?
        .ok_or_else(|| Failure::usage("--out is missing"))?;
    let chunk = args.chunk()?;
    args.finish()?;
    let pattern = Pattern::new(Stream::Stdout, chunk);
    let flags = fcntl_getfl(STDOUT)?;
    fcntl_setfl(STDOUT, flags | OFlags::NONBLOCK)?;
    let mut offset = 0;
    let mut blocked = Duration::ZERO;
    let mut waits = 0_u64;
    while offset < end {
        let length = (end - offset).min(chunk as u64) as usize;
        match rustix::io::write(STDOUT, pattern.slice(offset, length)) {
            Ok(count) => offset += count as u64,
            Err(Errno::AGAIN) => {
                let full = Instant::now();
                wait_writable(STDOUT)?;
                blocked += full.elapsed();
                waits += 1;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    fcntl_setfl(STDOUT, flags)?;
    let report = format!("blocked_ns={} waits={waits}\n", blocked.as_nanos());
    write_all(STDERR, report.as_bytes())?;
    Ok(0)
}
