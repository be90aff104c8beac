//! `args ARG…`: the arguments after `args`, each followed by a NUL, as raw bytes.
//!
//! With no argument it writes nothing, with one empty argument a single NUL.

use std::os::unix::ffi::OsStringExt;

use crate::process::{STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "args",
    usage: "ARG…",
    about: "writes each of its arguments, followed by a NUL",
    run,
};

fn run(args: Args) -> Outcome {
    let mut bytes = Vec::new();
    for arg in args.raw() {
        bytes.extend(arg.into_vec());
        bytes.push(0);
    }
    write_all(STDOUT, &bytes)?;
    Ok(0)
}
