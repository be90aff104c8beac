//! `trickle N MS [--size BYTES] [--err]`: N lines `line K…`, with MS between two.
//!
//! `--size` makes every line at least that long, filled up with dots, the newline
//! included.

use crate::process::{STDERR, STDOUT, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "trickle",
    usage: "N MS [--size BYTES] [--err]",
    about: "writes N lines, one each MS milliseconds",
    run,
};

fn run(mut args: Args) -> Outcome {
    let size = args.size("--size")?.unwrap_or(0) as usize;
    let fd = if args.flag("--err") { STDERR } else { STDOUT };
    let count = args.next_number("N")?;
    let pause = args.next_millis()?;
    args.finish()?;
    for number in 0..count {
        if number > 0 {
            sleep(pause);
        }
        let mut line = format!("line {number}").into_bytes();
        line.resize(line.len().max(size.saturating_sub(1)), b'.');
        line.push(b'\n');
        write_all(fd, &line)?;
    }
    Ok(0)
}
