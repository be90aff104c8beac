//! `hold-lock-uid UID MS`: a process that another user cannot kill.
//!
//! Needs root. Becomes UID for good, ignores SIGTERM, writes `ready PID` to stdout
//! and sleeps. A process of any third user gets EPERM when it tries to kill it.

use rustix::process::getpid;

use crate::args::{Failure, Waiting};
use crate::process::{STDOUT, become_user, ignore, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "hold-lock-uid",
    usage: "UID MS [--pidfile PATH] [--limit S|--no-limit]",
    about: "as root: becomes UID, ignores SIGTERM, writes ready PID, sleeps",
    run,
};

fn run(mut args: Args) -> Outcome {
    if args.flag("--print-ready") {
        return Err(Failure::usage("it always says that it is ready"));
    }
    let waiting = Waiting::take(&mut args)?;
    let uid = args.next_number("UID")?;
    let duration = args.next_millis()?;
    args.finish()?;
    let uid = u32::try_from(uid).map_err(|_| Failure::usage("UID is too large"))?;
    waiting.limit.arm();
    ignore(libc::SIGTERM)?;
    // Root announces it: the file may lie where the other user cannot write.
    waiting.announce(&[getpid()])?;
    become_user(uid)?;
    let ready = format!("ready {}\n", getpid().as_raw_pid());
    write_all(STDOUT, ready.as_bytes())?;
    sleep(duration);
    Ok(0)
}
