//! `bursts [--chunk N]`: for each line `BYTES` on stdin, writes so many bytes of the
//! pattern to stdout and as many to stderr, in turn, N (64K) a write; the pattern goes
//! on where it left off. Silent in between; exits 0 at the end of stdin.

use test_children::{Pattern, Stream};

use super::obey::line;
use crate::args::Failure;
use crate::process::{STDERR, STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "bursts",
    usage: "[--chunk N]",
    about: "writes a known pattern to stdout and stderr, as much as each line of stdin says",
    run,
};

fn run(mut args: Args) -> Outcome {
    let chunk = args.chunk()?;
    args.finish()?;
    let out = Pattern::new(Stream::Stdout, chunk);
    let err = Pattern::new(Stream::Stderr, chunk);
    let mut offset = 0;
    while let Some(line) = line()? {
        let bytes: u64 = line
            .parse()
            .map_err(|_| Failure::usage(format!("not a number: {line:?}")))?;
        let end = offset + bytes;
        while offset < end {
            let length = (end - offset).min(chunk as u64) as usize;
            write_all(STDOUT, out.slice(offset, length))?;
            write_all(STDERR, err.slice(offset, length))?;
            offset += length as u64;
        }
    }
    Ok(0)
}
