//! `term-exit CODE [--delay MS]`: on SIGTERM exits with CODE, MS later.
//!
//! It keeps SIGTERM blocked and waits for it, so none is lost, and a second one
//! does not shorten the delay.

use std::time::Duration;

use rustix::process::getpid;

use crate::args::Waiting;
use crate::process::{mask, restore, sleep, wait_for_signal};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "term-exit",
    usage: "CODE [--delay MS] [--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "on SIGTERM exits with CODE, after MS",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    let delay = Duration::from_millis(args.number("--delay")?.unwrap_or(0));
    let code = args.next_code()?;
    args.finish()?;
    waiting.limit.arm();
    mask(libc::SIG_BLOCK, libc::SIGTERM)?;
    // An ignored signal would never become pending.
    restore(libc::SIGTERM)?;
    waiting.announce(&[getpid()])?;
    wait_for_signal(libc::SIGTERM)?;
    sleep(delay);
    Ok(code)
}
