//! `setsid-grandchild [--ignore-term]`: a child and a grandchild, the latter in a
//! session of its own.
//!
//! All three pause. `--ignore-term` is about the grandchild alone. Announces the
//! pids of leader, child and grandchild.

use rustix::process::{getpid, setsid};

use crate::args::Waiting;
use crate::process::{Rendezvous, ignore, pause_forever, spawn};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "setsid-grandchild",
    usage: "[--ignore-term] [--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "has a grandchild in a session of its own",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    let ignore_term = args.flag("--ignore-term");
    args.finish()?;
    let limit = waiting.limit;
    limit.arm();
    let mut up = Rendezvous::new()?;
    let child = spawn(limit, || {
        spawn(limit, || {
            setsid()?;
            if ignore_term {
                ignore(libc::SIGTERM)?;
            }
            up.report()?;
            pause_forever()
        })?;
        up.leave();
        pause_forever()
    })?;
    let mut pids = vec![getpid(), child];
    pids.extend(up.collect(1)?);
    waiting.announce(&pids)?;
    pause_forever()
}
