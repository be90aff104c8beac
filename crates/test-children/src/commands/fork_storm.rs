//! `fork-storm N [--life MS] [--deadline S]`: N processes, each of which lives for MS
//! (100), forks a replacement and exits: a moving target that ignores SIGTERM.
//!
//! It ends by itself after S seconds (30, and no more) or after 20,000 forks in
//! all, for an init that is slow to reap must not run out of pids. The last in
//! each place then writes `survived` and a newline to stdout, so a test can tell
//! that nobody killed it. The leader, whose pid is announced, ignores SIGTERM too,
//! stays to the deadline, and exits 0.

use std::time::{Duration, Instant};

use rustix::process::getpid;

use crate::args::{Failure, Waiting};
use crate::process::{Limit, STDOUT, complain, fork, ignore, leave, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "fork-storm",
    usage: "N [--life MS] [--deadline S] [--print-ready] [--pidfile PATH]",
    about: "keeps N processes that fork a replacement and exit, over and over; 30 s at most",
    run,
};

/// Forks of a whole storm, all its places together.
const FORKS: u64 = 20_000;

fn run(mut args: Args) -> Outcome {
    if args.flag("--no-limit") || args.flag("--limit") {
        return Err(Failure::usage(
            "the limit of a fork storm is its --deadline",
        ));
    }
    let waiting = Waiting::take(&mut args)?;
    let life = Duration::from_millis(args.number("--life")?.unwrap_or(100));
    let seconds = args.number("--deadline")?.unwrap_or(30);
    let count = args.next_number("N")?;
    args.finish()?;
    if !(1..=500).contains(&count) || !(1..=30).contains(&seconds) {
        return Err(Failure::usage(
            "N is 1 to 500, the deadline 1 to 30 seconds",
        ));
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    limit_after(end).arm();
    ignore(libc::SIGTERM)?;
    // The first generation is the leader's to reap: let the kernel do it.
    ignore(libc::SIGCHLD)?;
    for _ in 0..count {
        if fork(limit_after(end))?.is_none() {
            storm(life, end, FORKS / count);
        }
    }
    waiting.announce(&[getpid()])?;
    sleep(end.saturating_duration_since(Instant::now()));
    Ok(0)
}

/// One place in the storm: what runs is now this process, now its replacement.
fn storm(life: Duration, end: Instant, generations: u64) -> ! {
    for _ in 0..generations {
        sleep(life.min(end.saturating_duration_since(Instant::now())));
        if Instant::now() >= end {
            break;
        }
        match fork(limit_after(end)) {
            Ok(None) => {}
            Ok(Some(_)) => leave(0),
            Err(error) => {
                complain(&format!("fork-storm: {error}"));
                leave(1)
            }
        }
    }
    let told = write_all(STDOUT, b"survived\n");
    leave(u8::from(told.is_err()))
}

/// A limit a little after the deadline, for processes that are still blocked then.
fn limit_after(end: Instant) -> Limit {
    Limit::seconds(end.saturating_duration_since(Instant::now()).as_secs() as u32 + 2)
}
