//! `fork-holder MS [--setsid] [--double-fork] [--stay] [--say TEXT]`: exits at once, and leaves
//! a process behind that holds stdout and stderr open for MS (0: until it is killed).
//!
//! TEXT and a newline are written by the program itself, when the holder is up.
//! `--setsid` gives the holder a session of its own; with `--double-fork` its
//! parent is gone before the program exits. With `--stay` the program pauses and
//! does not exit. The pid that is announced is that of
//! the holder.

use std::os::unix::ffi::OsStringExt;

use rustix::process::{WaitOptions, setsid, waitpid};

use crate::args::Waiting;
use crate::process::{Rendezvous, STDOUT, pause_forever, sleep, spawn, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "fork-holder",
    usage: "MS [--setsid] [--double-fork] [--stay] [--say TEXT] [--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "exits 0 and leaves a process that holds its stdout and stderr (0: forever)",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    let own_session = args.flag("--setsid");
    let double_fork = args.flag("--double-fork");
    let stay = args.flag("--stay");
    let text = args.value("--say")?;
    let duration = args.next_millis()?;
    args.finish()?;
    let limit = waiting.limit;
    if stay {
        limit.arm();
    }
    let mut up = Rendezvous::new()?;
    let mut hold = || {
        if own_session {
            setsid()?;
        }
        up.report()?;
        if duration.is_zero() {
            pause_forever();
        }
        sleep(duration);
        Ok(0)
    };
    if double_fork {
        let between = spawn(limit, || spawn(limit, hold).map(|_| 0).map_err(Into::into))?;
        waitpid(Some(between), WaitOptions::empty())?;
    } else {
        spawn(limit, &mut hold)?;
    }
    waiting.announce(&up.collect(1)?)?;
    if let Some(text) = text {
        let mut line = text.into_vec();
        line.push(b'\n');
        write_all(STDOUT, &line)?;
    }
    if stay {
        pause_forever();
    }
    Ok(0)
}
