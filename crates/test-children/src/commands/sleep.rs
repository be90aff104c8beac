//! `sleep MS`: lives for MS and exits 0.

use rustix::process::getpid;

use crate::args::Waiting;
use crate::process::sleep;
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "sleep",
    usage: "MS [--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "sleeps, exits 0",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    let duration = args.next_millis()?;
    args.finish()?;
    waiting.limit.arm();
    waiting.announce(&[getpid()])?;
    sleep(duration);
    Ok(0)
}
