//! `eat-pipes N SIZE MS [--uid UID]`: holds N pipes of SIZE bytes each.
//!
//! This uses up the pages that pipes of one unprivileged user may have; `--uid`, as
//! root, becomes that user first. Goes on where a pipe cannot be made that large: then
//! the budget is used up. Writes `ready PIPES BYTES` with what it got.

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::{Failure, take_limit};
use crate::process::{STDOUT, become_user, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "eat-pipes",
    usage: "N SIZE MS [--uid UID] [--limit S|--no-limit]",
    about: "holds N pipes of SIZE bytes; writes ready PIPES BYTES, sleeps",
    run,
};

fn run(mut args: Args) -> Outcome {
    let limit = take_limit(&mut args)?;
    let uid = args.number("--uid")?;
    let count = args.next_number("N")?;
    let size = args.next_size("SIZE")? as usize;
    let duration = args.next_millis()?;
    args.finish()?;
    limit.arm();
    if let Some(uid) = uid {
        become_user(u32::try_from(uid).map_err(|_| Failure::usage("UID is too large"))?)?;
    }
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )?;
    let mut held = Vec::new();
    let mut bytes = 0;
    for _ in 0..count {
        let ends = pipe_with(PipeFlags::CLOEXEC)?;
        // EPERM: the budget is used up, and the pipe stays as large as it is.
        let _ = fcntl_setpipe_size(&ends.1, size);
        bytes += fcntl_getpipe_size(&ends.1)?;
        held.push(ends);
    }
    write_all(STDOUT, format!("ready {} {bytes}\n", held.len()).as_bytes())?;
    sleep(duration);
    Ok(0)
}
