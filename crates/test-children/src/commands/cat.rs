//! `cat` and `cat-to-stderr`: copy stdin until its end, 64 KiB at a time.

use std::os::fd::BorrowedFd;

use crate::process::{STDERR, STDIN, STDOUT, read, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const CAT: Command = Command {
    name: "cat",
    usage: "",
    about: "copies stdin to stdout",
    run: |args| copy(args, STDOUT),
};

pub(crate) const CAT_TO_STDERR: Command = Command {
    name: "cat-to-stderr",
    usage: "",
    about: "copies stdin to stderr",
    run: |args| copy(args, STDERR),
};

fn copy(args: Args, to: BorrowedFd<'static>) -> Outcome {
    args.finish()?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match read(STDIN, &mut buffer)? {
            0 => return Ok(0),
            count => write_all(to, &buffer[..count])?,
        }
    }
}
