//! `stopped-member`: a child that ignores SIGTERM and has stopped itself.
//!
//! Announces the pids of leader and child once the child is stopped.

use rustix::process::{WaitOptions, getpid, waitpid};

use crate::args::{Failure, Waiting};
use crate::process::{ignore, pause_forever, raise, spawn};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "stopped-member",
    usage: "[--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "has a child that ignores SIGTERM and is stopped",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    args.finish()?;
    waiting.limit.arm();
    let child = spawn(waiting.limit, || {
        ignore(libc::SIGTERM)?;
        raise(libc::SIGSTOP)?;
        pause_forever()
    })?;
    match waitpid(Some(child), WaitOptions::UNTRACED)? {
        Some((_, status)) if status.stopped() => {}
        other => {
            return Err(Failure::Failed(format!(
                "the child did not stop: {other:?}"
            )));
        }
    }
    waiting.announce(&[getpid(), child])?;
    pause_forever()
}
