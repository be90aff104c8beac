//! `ignore-term`: ignores SIGTERM and SIGINT and pauses.

use rustix::process::getpid;

use crate::args::Waiting;
use crate::process::{ignore, pause_forever};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "ignore-term",
    usage: "[--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "ignores SIGTERM and SIGINT and pauses",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    args.finish()?;
    waiting.limit.arm();
    ignore(libc::SIGTERM)?;
    ignore(libc::SIGINT)?;
    waiting.announce(&[getpid()])?;
    pause_forever()
}
