//! `flood-blocked --out BYTES [--chunk N]`: writes the pattern, and measures how long
//! the pipe was full.
//!
//! At the end it writes `blocked_ns=N waits=M queued_ns=Q` to stderr: the nanoseconds
//! that it waited in `poll` after a write that found the pipe full, how many such
//! waits there were, and for how long of that time it could have gone on but had no
//! processor (0 where the system does not tell). It makes its stdout non-blocking meanwhile, which the reader
//! of a pipe does not notice, for the two ends are separate descriptions.
//!
//! N includes Q, what the scheduler took to run this process again after the reader
//! had made space. N less Q is the time for which the pipe was full.

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
    let flags = fcntl_getfl(STDOUT)?;
    fcntl_setfl(STDOUT, flags | OFlags::NONBLOCK)?;
    let mut offset = 0;
    let mut blocked = Duration::ZERO;
    let mut waits = 0_u64;
    let queue = Queue::open();
    let mut queued = 0_u64;
    while offset < end {
        let length = (end - offset).min(chunk as u64) as usize;
        match rustix::io::write(STDOUT, pattern.slice(offset, length)) {
            Ok(count) => offset += count as u64,
            Err(Errno::AGAIN) => {
                let before = queue.nanos();
                let full = Instant::now();
                wait_writable(STDOUT)?;
                blocked += full.elapsed();
                queued += queue.nanos().saturating_sub(before);
                waits += 1;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    fcntl_setfl(STDOUT, flags)?;
    let report = format!(
        "blocked_ns={} waits={waits} queued_ns={queued}\n",
        blocked.as_nanos()
    );
    write_all(STDERR, report.as_bytes())?;
    Ok(0)
}

/// The time for which this thread was ready to run and did not.
struct Queue(Option<std::fs::File>);

impl Queue {
    fn open() -> Queue {
        Queue(std::fs::File::open("/proc/thread-self/schedstat").ok())
    }

    fn nanos(&self) -> u64 {
        let Some(file) = &self.0 else { return 0 };
        let mut text = [0; 80];
        let length = rustix::io::pread(file, &mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let second = text.split_whitespace().nth(1);
        second.and_then(|word| word.parse().ok()).unwrap_or(0)
    }
}
