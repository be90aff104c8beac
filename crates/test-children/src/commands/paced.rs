//! `paced N MS [--size BYTES] [--say]`: N lines `line K…`, the K-th begun K times
//! MS after the first, or as soon after that as the reader of stdout lets it.
//!
//! `--size` makes every line at least that long, filled up with dots, the newline
//! included. `--say` says `wrote K` on stderr after each. At the end it says there
//! `blocked_ns=N waits=M queued_ns=Q wall_ns=W`, see [`Measured`], and for how long
//! it has been writing in all.

use std::time::Instant;

use crate::measured::Measured;
use crate::process::{STDERR, STDOUT, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "paced",
    usage: "N MS [--size BYTES] [--say]",
    about: "writes lines at a steady pace, and says for how long it was held up",
    run,
};

fn run(mut args: Args) -> Outcome {
    let size = args.size("--size")?.unwrap_or(0) as usize;
    let says = args.flag("--say");
    let count = args.next_number("N")?;
    let pace = args.next_millis()?;
    args.finish()?;
    let mut out = Measured::new(STDOUT)?;
    let begun = Instant::now();
    for number in 0..count {
        let due = begun + pace * number as u32;
        sleep(due.saturating_duration_since(Instant::now()));
        let mut line = format!("line {number}").into_bytes();
        line.resize(line.len().max(size.saturating_sub(1)), b'.');
        line.push(b'\n');
        out.write_all(&line)?;
        if says {
            write_all(STDERR, format!("wrote {number}\n").as_bytes())?;
        }
    }
    let wall = begun.elapsed();
    out.restore()?;
    let report = format!("{out} wall_ns={}\n", wall.as_nanos());
    write_all(STDERR, report.as_bytes())?;
    Ok(0)
}
