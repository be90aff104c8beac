//! A look at one program and its descendants alone: whether one of them sleeps where a wait
//! for input would.
//!
//! It costs some ten system calls for a process and none for the rest of the machine. What it
//! finds is only where to look closer: who else could end such a wait is for a look at all.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use super::{calls, children, descriptors, files, look, process};
use crate::wait::Wait;
use crate::world::Process;

/// A thread that sleeps in a read, or over a set of descriptors, that could be for input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sleeper {
    pub(crate) pid: i32,
    /// With the number it means this process and no other.
    start: u64,
    tid: i32,
    /// While these are as they were, it has slept in this one call.
    switches: (u64, u64),
    call: String,
}

/// Those who sleep where input may come.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    /// The threads that could wait for input.
    pub(crate) waiting: Vec<Sleeper>,
    /// The shortest time limit of those that sleep there with one: once that is over, they may
    /// sleep there without.
    pub(crate) limit: Option<Duration>,
}

/// The threads of `root`, and of all that descends from it, that could wait for input.
///
/// A child whose number comes and goes while this looks may be missed. `NotFound` if `root` is
/// not there.
pub(crate) fn sleepers(root: i32) -> io::Result<Sleepers> {
    let proc = look::open_proc()?;
    let (mut found, mut seen, mut next) = (Sleepers::default(), BTreeSet::new(), vec![root]);
    while let Some(pid) = next.pop() {
        if !seen.insert(pid) {
            continue;
        }
        match one(&proc, pid, &mut found, &mut next) {
            Ok(()) => {}
            // Of what may not be looked at nothing is claimed.
            Err(error) if pid != root || !files::is_gone(&error) => {}
            Err(error) => return Err(io::Error::new(io::ErrorKind::NotFound, error)),
        }
    }
    Ok(found)
}

fn one(proc: &OwnedFd, pid: i32, found: &mut Sleepers, next: &mut Vec<i32>) -> io::Result<()> {
    let dir = files::open_dir(proc, &pid.to_string())?;
    let Some(mut process) = process::read(dir.as_fd(), pid)? else {
        return Ok(());
    };
    for thread in &process.threads {
        // Without these lists the program itself is all that is looked at.
        next.extend(children::some_of_thread(&dir, thread.tid).unwrap_or_default());
    }
    let mut could_wait = process.threads.iter().filter(|one| one.wait.could_read());
    if process.gone || could_wait.next().is_none() {
        return Ok(());
    }
    process.fds = Some(descriptors::read(&dir, "fd")?);
    let is_input = |number: &i32| *number == 0 || is_its_terminal(&process, *number);
    for thread in &process.threads {
        let (waits, is_timed) = match &thread.wait {
            Wait::Read(fd) => (is_input(fd), false),
            Wait::Set { read, finite, .. } => (read.iter().any(is_input), *finite),
            _ => (false, false),
        };
        if waits && is_timed {
            let limit = calls::limit(dir.as_fd(), &thread.call);
            found.limit = found.limit.into_iter().chain(limit).min();
        } else if waits {
            found.waiting.push(Sleeper {
                pid,
                start: process.start,
                tid: thread.tid,
                switches: thread.switches,
                call: thread.call.clone(),
            });
        }
    }
    Ok(())
}

fn is_its_terminal(process: &Process, number: i32) -> bool {
    let fd = process.fd(number);
    fd.is_some_and(|fd| process.is_own_terminal(fd))
}
