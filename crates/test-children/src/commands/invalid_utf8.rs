//! `invalid-utf8 [--split MS] [--err]`: [`test_children::INVALID_UTF8`].
//!
//! With `--split` each byte is one write, with MS between two, so that characters
//! come apart at the reader.

use std::time::Duration;

use test_children::INVALID_UTF8;

use crate::process::{STDERR, STDOUT, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "invalid-utf8",
    usage: "[--split MS] [--err]",
    about: "writes text with invalid UTF-8 in it (--split: byte by byte)",
    run,
};

fn run(mut args: Args) -> Outcome {
    let fd = if args.flag("--err") { STDERR } else { STDOUT };
    let split = args.number("--split")?.map(Duration::from_millis);
    args.finish()?;
    let Some(pause) = split else {
        write_all(fd, INVALID_UTF8)?;
        return Ok(0);
    };
    for (index, byte) in INVALID_UTF8.iter().enumerate() {
        if index > 0 {
            sleep(pause);
        }
        write_all(fd, &[*byte])?;
    }
    Ok(0)
}
