//! Which ends of pipes processes have, asked of those pipes alone that somebody waits for.
//!
//! Nobody else's matter, and a descriptor that is asked about costs two calls more.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};

use super::{among, descriptors, files};
use crate::wait::Wait;
use crate::world::{Fd, Object, Process, World};

/// Tells of all descriptors of such a pipe which end each is.
///
/// A process whose descriptors are others by now has run, so that two looks prove nothing of it.
pub(super) fn tell(proc: &OwnedFd, world: &mut World) {
    let all = || world.processes.values();
    let wanted: HashSet<Object> = all().flat_map(waited_for).collect();
    if wanted.is_empty() {
        return;
    }
    let is_wanted = |fd: &Fd| fd.read && fd.write && wanted.contains(&fd.of);
    let has_wanted = |process: &&Process| process.fds.iter().flatten().any(is_wanted);
    let pids: Vec<i32> = all().filter(has_wanted).map(|one| one.pid).collect();
    let told = among::gather(&pids, |pid, told: &mut Vec<(i32, Vec<Fd>)>| {
        let process = world.processes.get(&pid);
        let Some(mut fds) = process.and_then(|process| process.fds.clone()) else {
            return;
        };
        // Of who has ended they stay as both.
        let _ = files::open_dir(proc, &pid.to_string())
            .and_then(|dir| descriptors::tell_ends(dir.as_fd(), &mut fds, &is_wanted));
        told.push((pid, fds));
    });
    for (looker, part) in told {
        world.lookers.insert(looker);
        for (pid, fds) in part {
            if let Some(process) = world.processes.get_mut(&pid) {
                process.fds = Some(fds);
            }
        }
    }
}

/// The pipes that the threads of a process wait for, or could.
fn waited_for(process: &Process) -> Vec<Object> {
    let mut found = Vec::new();
    let mut add = |fd: Option<&Fd>| {
        let pipe = fd.filter(|fd| matches!(fd.of, Object::Pipe(_) | Object::Fifo { .. }));
        found.extend(pipe.map(|fd| fd.of));
    };
    for thread in &process.threads {
        match &thread.wait {
            Wait::Read(fd) | Wait::Write(fd) => add(process.fd(*fd)),
            Wait::Set { read, write, .. } => {
                for fd in read.iter().chain(write) {
                    add(process.fd(*fd));
                }
            }
            Wait::Hidden(place) if place.contains("pipe") => {
                for fd in process.fds.iter().flatten() {
                    add(Some(fd));
                }
            }
            _ => {}
        }
    }
    found
}
