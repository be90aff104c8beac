//! `close-stdout-then-sleep MS [--both]`: closes stdout (and stderr), lives on for MS.

use crate::args::take_limit;
use crate::process::{STDERR, STDOUT, close, sleep};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "close-stdout-then-sleep",
    usage: "MS [--both] [--limit S|--no-limit]",
    about: "closes stdout (--both: and stderr), sleeps, exits 0",
    run,
};

fn run(mut args: Args) -> Outcome {
    let both = args.flag("--both");
    let limit = take_limit(&mut args)?;
    let duration = args.next_millis()?;
    args.finish()?;
    limit.arm();
    close(STDOUT);
    if both {
        close(STDERR);
    }
    sleep(duration);
    Ok(0)
}
