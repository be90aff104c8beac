//! One look at all processes.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use procwright_os::thread::{has_several_processors, spawn_quiet};
use rustix::fs::CWD;

use super::{descriptors, files, locks, peers, process};
use crate::wait::Wait;
use crate::world::{Object, World};

/// Rounds in which processes are looked at that have come during the round before.
const CHASES: usize = 32;

/// The number of the pid namespace that a machine begins with (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Bytes of a command line that are read: some have megabytes.
const LONGEST_COMMAND: usize = 4096;

/// Processes from which on several threads look, and how many.
const MANY: usize = 256;
const THREADS: usize = 4;

/// Looks at all processes.
///
/// Those that come meanwhile are looked at in further rounds, until a round finds no new
/// one: a child that was forked behind the look's back by a parent that has ended since
/// may hold what decides.
pub(crate) fn look() -> io::Result<World> {
    procwright_os::proc::check()?;
    add_all(files::open_dir(CWD, "/proc")?, World::default())
}

/// Looks again at these processes, and at those that have come since `first`. All others are as
/// `first` has seen them, without those that have gone.
pub(crate) fn look_again(first: &World, pids: &BTreeSet<i32>) -> io::Result<World> {
    let proc = files::open_dir(CWD, "/proc")?;
    let mut there = BTreeSet::new();
    files::numbers(&proc, &mut |pid| {
        there.insert(pid);
    })?;
    let mut world = first.clone();
    let stays = |pid: &i32| there.contains(pid) && !pids.contains(pid);
    world.processes.retain(|pid, _| stays(pid));
    world.kernel.retain(stays);
    world.unseen.processes.retain(stays);
    add_all(proc, world)
}

/// Looks at all processes that are not in `world` yet, and then at what is between them.
fn add_all(proc: OwnedFd, mut world: World) -> io::Result<World> {
    let known = world.processes.keys().chain(&world.kernel);
    let known = known.chain(&world.unseen.processes);
    let mut known: BTreeSet<i32> = known.copied().collect();
    let mut caught_up = false;
    for _ in 0..CHASES {
        let mut fresh = Vec::new();
        files::numbers(&proc, &mut |pid| {
            if known.insert(pid) {
                fresh.push(pid);
            }
        })?;
        if fresh.is_empty() {
            caught_up = true;
            break;
        }
        add_these(&proc, &fresh, &mut world);
    }
    world.unseen.hurried = !caught_up;
    world.unseen.hidepid = !is_root_of_the_machine() && hides_processes();
    world.unseen.namespace = rustix::fs::stat("/proc/self/ns/pid")
        .map_or(true, |namespace| namespace.st_ino != FIRST_PID_NAMESPACE);
    // Where all calls were seen it holds nobody up.
    let is_hidden = |wait: &Wait| matches!(wait, Wait::Hidden(_));
    let mut threads = world.processes.values().flat_map(|one| &one.threads);
    world.ancestors_only = threads.any(|thread| is_hidden(&thread.wait))
        && std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
            .is_ok_and(|scope| scope.trim() != "0");
    let with_ring = world
        .processes
        .values()
        .filter(|process| process.has_ring());
    world.unseen.rings = with_ring.map(|process| process.pid).collect();
    let has_sockets = world.processes.values().any(|process| {
        let mut fds = process.fds.iter().flatten();
        fds.any(|fd| matches!(fd.of, Object::Socket(_)))
    });
    if has_sockets {
        // Without them a socket's peer is not known, which is a doubt where it matters.
        world.peers = peers::all().unwrap_or_default();
    }
    world.locks = locks::waits(&proc, &world).unwrap_or_default();
    Ok(world)
}

/// Adds these processes; where they are many, on several threads.
fn add_these(proc: &OwnedFd, pids: &[i32], world: &mut World) {
    let mut shares = pids.chunks(match pids.len() < MANY || !has_several_processors() {
        true => pids.len(),
        false => pids.len().div_ceil(THREADS),
    });
    let own = shares.next().unwrap_or_default();
    let mut others = Vec::new();
    for share in shares {
        let (proc, owned) = (proc.try_clone(), share.to_vec());
        let begun = proc.and_then(|proc| {
            spawn_quiet("procwright-look", move || {
                let mut part = World::default();
                for pid in owned {
                    add(&proc, pid, &mut part);
                }
                part
            })
        });
        others.push((share, begun));
    }
    for &pid in own {
        add(proc, pid, world);
    }
    for (share, begun) in others {
        match begun.map(JoinHandle::join) {
            Ok(Ok(mut part)) => {
                world.processes.append(&mut part.processes);
                world.kernel.append(&mut part.kernel);
                world.unseen.processes.append(&mut part.unseen.processes);
            }
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // A thread or a descriptor was refused.
            Err(_) => {
                for &pid in share {
                    add(proc, pid, world);
                }
            }
        }
    }
}

/// Adds one process, unless it is the kernel's or has gone.
fn add(proc: &OwnedFd, pid: i32, world: &mut World) {
    let name = pid.to_string();
    let read = files::open_dir(proc, &name).and_then(|dir| {
        let Some(mut seen) = process::read(dir.as_fd(), pid)? else {
            world.kernel.insert(pid);
            return Ok(());
        };
        if !seen.gone {
            match descriptors::read(dir.as_fd()) {
                Ok(fds) => seen.fds = Some(fds),
                Err(error) if files::is_gone(&error) => return Ok(()),
                Err(_) => world.unseen.processes.push(pid),
            }
        }
        world.processes.insert(pid, seen);
        Ok(())
    });
    // Of one that has ended there is nothing to be seen; of another there would be.
    if read.is_err_and(|error| !files::is_gone(&error)) {
        world.unseen.processes.push(pid);
    }
}

/// True if we are root, and not of a user namespace, where root sees its own users alone.
fn is_root_of_the_machine() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    rustix::process::geteuid().is_root() && is_identity(&map)
}

fn is_identity(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// True if `/proc` may leave out processes.
fn hides_processes() -> bool {
    std::fs::read_to_string("/proc/self/mounts").map_or(true, |mounts| {
        let mut of_proc = mounts.lines().filter(|line| line.contains(" /proc proc "));
        of_proc.any(|line| line.contains("hidepid=") && !line.contains("hidepid=0"))
    })
}

/// The command line of a process, as a shell would take it, cut behind [`LONGEST_COMMAND`].
pub(crate) fn command_line(pid: i32) -> Option<String> {
    let mut buffer = [0; LONGEST_COMMAND];
    let text = files::read(CWD, &format!("/proc/{pid}/cmdline"), &mut buffer).ok()?;
    let is_cut = text.len() == LONGEST_COMMAND;
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.trim_end_matches('\0').split('\0').collect();
    match words.as_slice() {
        [""] | [] => None,
        words if is_cut => Some(shell_words::join(words) + "…"),
        words => Some(shell_words::join(words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_looked_at_on_several_threads() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let proc = files::open_dir(CWD, "/proc").unwrap();
        for place in [0, MANY / 2, MANY - 1] {
            // Nobody has the largest of numbers.
            let mut pids = vec![i32::MAX; MANY];
            pids[place] = own;
            let mut world = World::default();
            add_these(&proc, &pids, &mut world);
            assert!(world.processes.keys().eq([&own]), "{place}");
        }
    }

    #[test]
    fn root_of_a_user_namespace_is_not_that_of_the_machine() {
        assert!(is_identity("         0          0 4294967295\n"));
        assert!(!is_identity("         0       1000          1\n"));
        assert!(!is_identity("0 0 1000\n1000 100000 65536\n"));
        assert!(!is_identity(""));
    }
}
