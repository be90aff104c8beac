//! `echo [--stderr] ARG…`: the arguments, with spaces between and a newline, as raw
//! bytes.
//!
//! `--stderr` is an option only as the first argument.

use std::os::unix::ffi::OsStringExt;

use crate::process::{STDERR, STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "echo",
    usage: "[--stderr] ARG…",
    about: "writes its arguments and a newline to stdout (or stderr)",
    run,
};

fn run(args: Args) -> Outcome {
    let mut words = args.raw();
    let mut fd = STDOUT;
    if words.first().is_some_and(|word| word == "--stderr") {
        words.remove(0);
        fd = STDERR;
    }
    let words: Vec<Vec<u8>> = words.into_iter().map(OsStringExt::into_vec).collect();
    let mut line = words.join(&b' ');
    line.push(b'\n');
    write_all(fd, &line)?;
    Ok(0)
}
