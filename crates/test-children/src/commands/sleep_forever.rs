//! `sleep-forever`: lives until a signal kills it.

use rustix::process::getpid;

use crate::args::Waiting;
use crate::process::pause_forever;
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "sleep-forever",
    usage: "[--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "pauses until a signal kills it",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    args.finish()?;
    waiting.limit.arm();
    waiting.announce(&[getpid()])?;
    pause_forever()
}
