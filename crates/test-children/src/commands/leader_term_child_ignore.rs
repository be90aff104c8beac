//! `leader-term-child-ignore`: SIGTERM kills the leader, but not its child.
//!
//! Announces the pids of leader and child.

use rustix::process::getpid;

use crate::args::Waiting;
use crate::process::{Rendezvous, ignore, pause_forever, restore, spawn};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "leader-term-child-ignore",
    usage: "[--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "dies by SIGTERM, while its child ignores it",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    args.finish()?;
    waiting.limit.arm();
    restore(libc::SIGTERM)?;
    let mut up = Rendezvous::new()?;
    spawn(waiting.limit, || {
        ignore(libc::SIGTERM)?;
        up.report()?;
        pause_forever()
    })?;
    let mut pids = vec![getpid()];
    pids.extend(up.collect(1)?);
    waiting.announce(&pids)?;
    pause_forever()
}
