//! What is looked at only where somebody seems to be stuck, because it costs too much for
//! all processes each time.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, CWD};

use super::{calls, creation, descriptors, ends, files, frozen};
use crate::wait::{Children, Wait};
use crate::world::{Births, Fd, Object, World};

/// Looks for what could release `suspects` after all: timers of theirs, descriptors in
/// tables that a thread has for itself, and descriptors on their way through sockets.
/// Returns when the pipes of theirs were made, if the kernel `keeps_creation`.
pub(crate) fn look_closer(
    world: &mut World,
    suspects: &BTreeSet<i32>,
    keeps_creation: bool,
) -> Births {
    let mut births = Births::new();
    let Ok(proc) = files::open_dir(CWD, "/proc") else {
        world.unseen.hurried = true;
        return births;
    };
    frozen::tell(world, suspects);
    let mut in_flight = false;
    for process in world.processes.values_mut() {
        let mut fds = process.fds.iter().flatten();
        let has_sockets = fds.any(|fd| fd.of.socket().is_some());
        let has_threads = process.threads.len() > 1;
        if !has_sockets && !has_threads && !suspects.contains(&process.pid) {
            continue;
        }
        let Ok(dir) = files::open_dir(&proc, &process.pid.to_string()) else {
            continue;
        };
        let mut buffer = [0; 256];
        if suspects.contains(&process.pid) {
            for thread in &process.threads {
                let path = format!("task/{}/wchan", thread.tid);
                let place = files::read(dir.as_fd(), &path, &mut buffer).unwrap_or_default();
                let place = String::from_utf8_lossy(place);
                let of_pipe = |fd: i32| {
                    let fd = process.fds.iter().flatten().find(|one| one.number == fd);
                    fd.is_some_and(|fd| matches!(fd.of, Object::Pipe(_) | Object::Fifo { .. }))
                };
                process.elsewhere |= !fits(&thread.wait, &place, &of_pipe);
            }
            process.timers = files::read(dir.as_fd(), "timers", &mut buffer)
                .ok()
                .map(|timers| !timers.is_empty());
        }
        let Some(fds) = &mut process.fds else {
            continue;
        };
        in_flight |= fds.iter().any(|fd| {
            fd.of.socket().is_some() && {
                let path = format!("fdinfo/{}", fd.number);
                let text = files::read(dir.as_fd(), &path, &mut buffer).unwrap_or_default();
                let waiting = files::field(text, "scm_fds:").and_then(files::number::<u64>);
                waiting.is_some_and(|count| count > 0)
            }
        });
        if keeps_creation && suspects.contains(&process.pid) {
            for fd in fds.iter().filter(|fd| matches!(fd.of, Object::Pipe(_))) {
                let path = format!("fd/{}", fd.number);
                let stat = rustix::fs::statat(&dir, path.as_str(), AtFlags::empty());
                // The descriptor may be another by now.
                let stat = stat.ok().filter(|stat| Object::Pipe(stat.st_ino) == fd.of);
                if let Some(made) = stat.and_then(|stat| creation::ticks(&stat)) {
                    births.insert(fd.of, made);
                }
            }
        }
        if process.threads.len() > 1 {
            for tid in process.threads.iter().map(|thread| thread.tid) {
                add_own_table(&dir, tid, fds);
            }
        }
    }
    world.unseen.in_flight = in_flight;
    // A thread may wait for a pipe that is in its own table alone.
    ends::tell(&proc, world);
    births
}

/// True if a thread that waits so sleeps at this place in the kernel. A filter of system
/// calls may hold it up before the call has begun, or within it a server of files in user space
/// that has the page for the bytes.
fn fits(wait: &Wait, place: &str, of_pipe: &dyn Fn(i32) -> bool) -> bool {
    if place.contains("request_wait_answer") {
        return false;
    }
    match wait {
        // "pipe_read" until 6.14, "anon_pipe_read" from 6.15; "pipe_wait_readable" in splice.
        // Doubts go with other descriptors anyway.
        Wait::Read(fd) | Wait::Write(fd) if of_pipe(*fd) => place.contains("pipe"),
        Wait::Read(_) => place.contains("wait") || place.contains("read"),
        Wait::Write(_) => place.contains("wait") || place.contains("write"),
        Wait::Set { .. } => ["poll", "select", "pipe"]
            .iter()
            .any(|word| place.contains(word)),
        Wait::Child(Children::Vfork) => calls::is_vfork(place),
        Wait::Child(_) => place.contains("wait"),
        Wait::FileLock(_) => place.contains("lock"),
        Wait::Futex { .. } => place.contains("futex"),
        _ => true,
    }
}

/// Adds descriptors that this thread has and the process has not: it may have unshared its
/// table, and that of a first thread that has ended is empty.
fn add_own_table(dir: &OwnedFd, tid: i32, fds: &mut Vec<Fd>) {
    let Ok(task) = files::open_dir(dir, &format!("task/{tid}")) else {
        return;
    };
    let of = |fd: &Fd| (fd.number, fd.of);
    let known: HashSet<(i32, Object)> = fds.iter().map(of).collect();
    let mut own = descriptors::read(&task, "fd").unwrap_or_default();
    own.retain(|fd| !known.contains(&of(fd)));
    let is_pipe = |fd: &Fd| matches!(fd.of, Object::Pipe(_) | Object::Fifo { .. });
    if own.iter().any(is_pipe) {
        // Of a thread that has ended they stay as both ends.
        let _ = descriptors::tell_ends(task.as_fd(), &mut own, &is_pipe);
    }
    fds.append(&mut own);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_fits_its_place_alone() {
        let vfork = Wait::Child(Children::Vfork);
        let (pipe, other) = (&|_| true, &|_| false);
        assert!(fits(&vfork, "kernel_clone", pipe));
        assert!(!fits(&vfork, "seccomp_do_user_notification", pipe));
        assert!(fits(&Wait::Read(0), "anon_pipe_read", pipe));
        assert!(fits(&Wait::Write(0), "pipe_write", pipe));
        assert!(!fits(&Wait::Read(0), "wait_woken", pipe));
        assert!(fits(&Wait::Read(0), "wait_woken", other));
        for wait in [Wait::Read(0), Wait::Child(Children::Any)] {
            assert!(!fits(&wait, "request_wait_answer", other), "{wait:?}");
        }
    }
}
