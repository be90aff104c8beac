//! `fork-flooder [--own BYTES] [--chunk N]`: exits, and leaves a process behind that
//! writes dots to stdout for ever.
//!
//! The program itself writes BYTES (4096) bytes of the letter `O` while the other
//! floods, so that a test can count them: `--own` bytes, no more and no fewer. The
//! pid that is announced is that of the flooder.

use test_children::{FLOOD_BYTE, OWN_BYTE};

use crate::args::{Failure, Waiting};
use crate::process::{Rendezvous, STDOUT, spawn, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "fork-flooder",
    usage: "[--own BYTES] [--chunk N] [--pidfile PATH] [--limit S|--no-limit]",
    about: "writes BYTES times O among the dots of a process that floods on after its exit",
    run,
};

fn run(mut args: Args) -> Outcome {
    if args.flag("--print-ready") {
        return Err(Failure::usage("use --pidfile: stdout is flooded"));
    }
    let waiting = Waiting::take(&mut args)?;
    let own = args.size("--own")?.unwrap_or(4096);
    let chunk = args.chunk()?;
    args.finish()?;
    let mut up = Rendezvous::new()?;
    spawn(waiting.limit, || {
        let block = vec![FLOOD_BYTE; chunk];
        // The pipe is empty, so this byte always finds room.
        write_all(STDOUT, &block[..1])?;
        up.report()?;
        loop {
            write_all(STDOUT, &block)?;
        }
    })?;
    waiting.announce(&up.collect(1)?)?;
    let block = vec![OWN_BYTE; 4096];
    let mut left = own;
    while left > 0 {
        let length = left.min(block.len() as u64);
        write_all(STDOUT, &block[..length as usize])?;
        left -= length;
    }
    Ok(0)
}
