//! One look at all processes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::CWD;

use super::descriptors::{self, Ends};
use super::process::{self, Depth};
use super::{among, files, locks, peers, tcp};
use crate::wait::Wait;
use crate::world::World;

/// Rounds in which processes are looked at that have come during the round before.
const CHASES: usize = 32;

/// The number of the pid namespace that a machine begins with (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Bytes of a command line that are read: some have megabytes.
const LONGEST_COMMAND: usize = 4096;

/// Looks at all processes.
///
/// Those that come meanwhile are looked at in further rounds, until a round finds no new
/// one: a child that was forked behind the look's back by a parent that has ended since
/// may hold what decides.
pub(crate) fn look() -> io::Result<World> {
    let proc = open_proc()?;
    let mut world = World::default();
    let there = numbers(&proc)?;
    chase(&proc, there, &mut world)?;
    add_surroundings(&proc, &mut world);
    Ok(world)
}

/// Looks at what all processes have open and whose children they are, and no closer: of an
/// outline [`look_at`] makes the whole.
///
/// Those that come meanwhile are left out, so that nothing is proven by outlines.
pub(crate) fn outline() -> io::Result<World> {
    let proc = open_proc()?;
    let mut world = World::default();
    add_these(&proc, &numbers(&proc)?, Depth::Outline, &mut world);
    Ok(world)
}

/// Looks at these processes of `world`, and at what is between all of them.
///
/// Their descriptors are read anew, behind the threads. One that has gone remains as an outline
/// of what it was.
pub(crate) fn look_at(world: &mut World, pids: &BTreeSet<i32>) -> io::Result<()> {
    let proc = open_proc()?;
    let mut outlines = BTreeMap::new();
    for pid in pids {
        outlines.extend(world.processes.remove_entry(pid));
    }
    world.unseen.processes.retain(|pid| !pids.contains(pid));
    let pids: Vec<i32> = pids.iter().copied().collect();
    add_these(&proc, &pids, Depth::Whole, world);
    for (pid, mut outline) in outlines {
        let is_known = world.processes.contains_key(&pid) || world.unseen.processes.contains(&pid);
        if !is_known {
            outline.gone = true;
            outline.fds = None;
            world.processes.insert(pid, outline);
        }
    }
    add_surroundings(&proc, world);
    Ok(())
}

/// The numbers of those that have come since `world` was looked at.
pub(crate) fn newcomers(world: &World) -> io::Result<BTreeSet<i32>> {
    let known = known(world);
    let proc = open_proc()?;
    let there = numbers(&proc)?;
    Ok(there
        .into_iter()
        .filter(|pid| !known.contains(pid))
        .collect())
}

/// Adds to the outlines of `world` who traces them.
pub(crate) fn add_tracers(world: &mut World) -> io::Result<()> {
    let proc = open_proc()?;
    let all = world.processes.values();
    let outlines = all.filter(|process| process.is_outline && !process.gone);
    let pids: Vec<i32> = outlines.map(|process| process.pid).collect();
    let traced = among::gather(&proc, &pids, |proc, pid, found: &mut Vec<(i32, i32)>| {
        let dir = files::open_dir(proc, &pid.to_string());
        if let Ok(tracer) = dir.and_then(|dir| process::tracer(dir.as_fd())) {
            found.push((pid, tracer));
        }
    });
    for (looker, part) in traced {
        world.lookers.insert(looker);
        for (pid, tracer) in part {
            if let Some(process) = world.processes.get_mut(&pid) {
                process.tracer = tracer;
            }
        }
    }
    Ok(())
}

/// Looks again at `pids` and, whether they have ended, at their children, and at those that have
/// come since `first`. All others are as `first` has seen them, without those that have gone.
pub(crate) fn look_again(first: &World, pids: &BTreeSet<i32>) -> io::Result<World> {
    let proc = open_proc()?;
    let there = numbers(&proc)?;
    let again = first.with_children(pids.clone());
    let is_there: BTreeSet<i32> = there.iter().copied().collect();
    let mut world = first.clone();
    let stays = |pid: &i32| is_there.contains(pid) && !again.contains(pid);
    world.processes.retain(|pid, _| stays(pid));
    world.kernel.retain(stays);
    world.unseen.processes.retain(stays);
    if first.has_outlines() {
        // A child that nobody waits for has no need to be seen as a whole.
        let again = again.intersection(&is_there).copied();
        let (outlines, mut whole): (Vec<i32>, Vec<i32>) =
            again.partition(|pid| first.is_outline(*pid));
        let known = known(first);
        whole.extend(there.into_iter().filter(|pid| !known.contains(pid)));
        add_these(&proc, &whole, Depth::Whole, &mut world);
        add_these(&proc, &outlines, Depth::Outline, &mut world);
    } else {
        chase(&proc, there, &mut world)?;
    }
    add_surroundings(&proc, &mut world);
    Ok(world)
}

pub(super) fn open_proc() -> io::Result<Arc<OwnedFd>> {
    procwright_os::proc::check()?;
    Ok(Arc::new(files::open_dir(CWD, "/proc")?))
}

/// The numbers of all processes.
fn numbers(proc: &OwnedFd) -> io::Result<Vec<i32>> {
    let mut all = Vec::new();
    files::numbers(proc, &mut |pid| all.push(pid))?;
    Ok(all)
}

/// The numbers of those that were looked at, or could not be.
fn known(world: &World) -> BTreeSet<i32> {
    let known = world.processes.keys().chain(&world.kernel);
    known.chain(&world.unseen.processes).copied().collect()
}

/// Looks at those of `there` that are not in `world` yet, and at those that come meanwhile.
fn chase(proc: &Arc<OwnedFd>, mut there: Vec<i32>, world: &mut World) -> io::Result<()> {
    let mut known = known(world);
    for _ in 0..CHASES {
        there.retain(|&pid| known.insert(pid));
        if there.is_empty() {
            world.unseen.hurried = false;
            return Ok(());
        }
        add_these(proc, &there, Depth::Whole, world);
        there = numbers(proc)?;
    }
    world.unseen.hurried = true;
    Ok(())
}

/// Adds what is between the processes of `world`, and what it cannot show.
fn add_surroundings(proc: &OwnedFd, world: &mut World) {
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
        fds.any(|fd| fd.of.socket().is_some())
    });
    if has_sockets {
        let peers = peers::all();
        world.unseen.peers = peers.is_err();
        world.peers = peers.unwrap_or_default();
        tcp::add(world);
    }
    world.locks = locks::waits(proc, world).unwrap_or_default();
}

/// Adds these processes.
fn add_these(proc: &Arc<OwnedFd>, pids: &[i32], depth: Depth, world: &mut World) {
    let add: fn(&OwnedFd, i32, &mut World) = match depth {
        Depth::Outline => |proc, pid, part| add(proc, pid, Depth::Outline, part),
        Depth::Whole => |proc, pid, part| add(proc, pid, Depth::Whole, part),
    };
    for (looker, mut part) in among::gather(proc, pids, add) {
        world.lookers.insert(looker);
        world.processes.append(&mut part.processes);
        world.kernel.append(&mut part.kernel);
        world.unseen.processes.append(&mut part.unseen.processes);
    }
    world.unseen.processes.sort_unstable();
}

/// Adds one process, unless it is the kernel's or has gone.
fn add(proc: &OwnedFd, pid: i32, depth: Depth, world: &mut World) {
    let ends = match depth {
        Depth::Outline => Ends::Untold,
        Depth::Whole => Ends::Told,
    };
    let read = files::open_dir(proc, &pid.to_string()).and_then(|dir| {
        let Some(mut seen) = process::read(dir.as_fd(), pid, depth)? else {
            world.kernel.insert(pid);
            return Ok(());
        };
        if !seen.gone {
            match descriptors::read(dir.as_fd(), ends) {
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

/// Pages that the pipes of one user may have before new ones are small; 0 without a limit.
pub(crate) fn pipe_budget() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").ok()?;
    text.trim().parse().ok()
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
        let proc = open_proc().unwrap();
        for place in [0, among::MANY / 2, among::MANY - 1] {
            // Nobody has the largest of numbers.
            let mut pids = vec![i32::MAX; among::MANY];
            pids[place] = own;
            let mut world = World::default();
            add_these(&proc, &pids, Depth::Whole, &mut world);
            assert!(world.processes.keys().eq([&own]), "{place}");
        }
    }

    #[test]
    fn of_an_outline_a_look_makes_the_whole() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut world = outline().unwrap();
        let seen = &world.processes[&own];
        assert!(seen.is_outline && seen.threads.is_empty() && seen.thread_count > 0);
        assert!(seen.fds.is_some());
        look_at(&mut world, &BTreeSet::from([own])).unwrap();
        let seen = &world.processes[&own];
        assert!(!seen.is_outline && !seen.threads.is_empty());
        assert!(world.has_outlines());
    }

    #[test]
    fn root_of_a_user_namespace_is_not_that_of_the_machine() {
        assert!(is_identity("         0          0 4294967295\n"));
        assert!(!is_identity("         0       1000          1\n"));
        assert!(!is_identity("0 0 1000\n1000 100000 65536\n"));
        assert!(!is_identity(""));
    }
}
