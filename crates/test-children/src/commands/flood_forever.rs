//! `flood-forever [--chunk N] [--err]`: writes until the reader is gone.
//!
//! SIGPIPE with its default action then kills it, like `yes`.

use test_children::FLOOD_BYTE;

use crate::args::take_limit;
use crate::process::{STDERR, STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "flood-forever",
    usage: "[--chunk N] [--err] [--limit S|--no-limit]",
    about: "writes dots to stdout (or stderr) until its reader is gone",
    run,
};

fn run(mut args: Args) -> Outcome {
    let chunk = args.chunk()?;
    let fd = if args.flag("--err") { STDERR } else { STDOUT };
    let limit = take_limit(&mut args)?;
    args.finish()?;
    limit.arm();
    let block = vec![FLOOD_BYTE; chunk];
    loop {
        write_all(fd, &block)?;
    }
}
