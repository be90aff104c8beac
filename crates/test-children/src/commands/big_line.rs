//! `big-line BYTES [--err]`: one line of BYTES bytes, the newline at its end included.

use crate::process::{STDERR, STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "big-line",
    usage: "BYTES [--err]",
    about: "writes one line of that size, of the letter x",
    run,
};

fn run(mut args: Args) -> Outcome {
    let fd = if args.flag("--err") { STDERR } else { STDOUT };
    let size = args.next_size("BYTES")?;
    args.finish()?;
    let block = vec![b'x'; 64 << 10];
    let mut left = size.saturating_sub(1);
    while left > 0 {
        let length = left.min(block.len() as u64);
        write_all(fd, &block[..length as usize])?;
        left -= length;
    }
    if size > 0 {
        write_all(fd, b"\n")?;
    }
    Ok(0)
}
