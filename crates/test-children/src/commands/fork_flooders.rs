//! `fork-flooders N [--own BYTES]`: as `fork-flooder`, with N processes on each of
//! stdout and stderr.
//!
//! The program writes BYTES (4096) times `O` to each of both while they flood.

use test_children::{FLOOD_BYTE, OWN_BYTE};

use crate::args::{Failure, take_limit};
use crate::process::{Rendezvous, STDERR, STDOUT, spawn, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "fork-flooders",
    usage: "N [--own BYTES] [--limit S|--no-limit]",
    about: "writes O to stdout and stderr among the dots of N processes on each that go on",
    run,
};

fn run(mut args: Args) -> Outcome {
    let limit = take_limit(&mut args)?;
    let own = args.size("--own")?.unwrap_or(4096);
    let count = args.next_number("N")?;
    args.finish()?;
    if !(1..=50).contains(&count) {
        return Err(Failure::usage("N is 1 to 50"));
    }
    let mut up = Rendezvous::new()?;
    for _ in 0..count {
        for fd in [STDOUT, STDERR] {
            spawn(limit, || {
                let block = vec![FLOOD_BYTE; 64 << 10];
                // The pipe is empty enough for this.
                write_all(fd, &block[..1])?;
                up.report()?;
                loop {
                    write_all(fd, &block)?;
                }
            })?;
        }
    }
    up.collect(count as usize * 2)?;
    let block = vec![OWN_BYTE; 4096];
    let mut left = own;
    while left > 0 {
        let length = left.min(block.len() as u64) as usize;
        write_all(STDOUT, &block[..length])?;
        write_all(STDERR, &block[..length])?;
        left -= length as u64;
    }
    Ok(0)
}
