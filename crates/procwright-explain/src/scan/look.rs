//! One look at all processes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::CWD;

use super::{among, descriptors, ends, files, kin, locks, peers, process, sharers, slept, tcp};
use crate::wait::Wait;
use crate::world::{Others, World};

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
    look_since(&World::default())
}

/// Looks at all processes as [`look`] does, and reads of those that have slept since `before`
/// was looked at only that they have: a third of what a whole look takes.
///
/// What of `before` was looked at closer is not to be taken for what this look would see.
pub(crate) fn look_since(before: &World) -> io::Result<World> {
    let proc = open_proc()?;
    let mut world = World::default();
    let there = numbers(&proc)?;
    chase(&proc, there, before, &mut world)?;
    add_surroundings(&proc, &mut world);
    Ok(world)
}

pub(super) fn open_proc() -> io::Result<OwnedFd> {
    procwright_os::proc::check()?;
    files::open_dir(CWD, "/proc")
}

/// The numbers of all processes.
pub(super) fn numbers(proc: &OwnedFd) -> io::Result<Vec<i32>> {
    let mut all = Vec::new();
    files::numbers(proc, &mut |pid| all.push(pid))?;
    Ok(all)
}

/// The numbers of those that were looked at, or could not be.
pub(super) fn known(world: &World) -> BTreeSet<i32> {
    let links = match &world.others {
        Others::Links(links) => Some(links.keys()),
        _ => None,
    };
    let known = world.processes.keys().chain(&world.kernel);
    let known = known.chain(&world.unseen.processes);
    known.chain(links.into_iter().flatten()).copied().collect()
}

/// Looks at those of `there` that are not in `world` yet, and at those that come meanwhile.
pub(super) fn chase(
    proc: &OwnedFd,
    mut there: Vec<i32>,
    before: &World,
    world: &mut World,
) -> io::Result<()> {
    let mut known = known(world);
    for _ in 0..CHASES {
        there.retain(|&pid| known.insert(pid));
        if there.is_empty() {
            world.unseen.hurried = false;
            return Ok(());
        }
        add_these(proc, &there, before, world);
        there = numbers(proc)?;
    }
    world.unseen.hurried = true;
    Ok(())
}

/// Adds what is between the processes of `world`, and what it cannot show.
pub(super) fn add_surroundings(proc: &OwnedFd, world: &mut World) {
    world.unseen.hidepid = !is_root_of_the_machine() && hides_processes();
    world.unseen.namespace = rustix::fs::stat("/proc/self/ns/pid")
        .map_or(true, |namespace| namespace.st_ino != FIRST_PID_NAMESPACE);
    // Where all calls were seen it holds nobody up.
    world.ancestors_only = any_waits(world, |wait| matches!(wait, Wait::Hidden(_)))
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
    // A read of the list stops all who take a lock for as long as the system waits for every
    // processor: 10 ms and more.
    world.locks = match any_waits(world, |wait| matches!(wait, Wait::FileLock(_))) {
        true => locks::waits(proc, world).unwrap_or_default(),
        false => Vec::new(),
    };
    sharers::add(proc, world);
    ends::tell(proc, world);
}

/// True if a thread waits so.
fn any_waits(world: &World, so: impl Fn(&Wait) -> bool) -> bool {
    let mut threads = world.processes.values().flat_map(|one| &one.threads);
    threads.any(|thread| so(&thread.wait))
}

/// Adds these processes, of which an earlier look may know as `before`.
pub(super) fn add_these(proc: &OwnedFd, pids: &[i32], before: &World, world: &mut World) {
    let add = |pid: i32, part: &mut World| {
        let before = before.processes.get(&pid);
        match before.and_then(|before| slept::unchanged(proc, before)) {
            Some(process) => {
                if !process.gone && process.fds.is_none() {
                    part.unseen.processes.push(pid);
                }
                part.processes.insert(pid, process);
            }
            None => add(proc, pid, part),
        }
    };
    for (looker, part) in among::gather(pids, add) {
        world.append(looker, part);
    }
    kin::renew_since(proc, pids, before, world);
}

/// Adds one process, unless it is the kernel's or has gone.
pub(super) fn add(proc: &OwnedFd, pid: i32, world: &mut World) {
    let read = files::open_dir(proc, &pid.to_string()).and_then(|dir| {
        let Some(mut seen) = process::read(dir.as_fd(), pid)? else {
            world.kernel.insert(pid);
            return Ok(());
        };
        if !seen.gone {
            match descriptors::read(&dir, "fd") {
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

/// The command lines of those of these processes that have one, as a shell would take them, cut
/// behind [`LONGEST_COMMAND`].
pub(crate) fn command_lines(pids: &BTreeSet<i32>) -> BTreeMap<i32, String> {
    let Ok(proc) = open_proc() else {
        return BTreeMap::new();
    };
    let pids: Vec<i32> = pids.iter().copied().collect();
    let lines = among::gather(&pids, |pid, lines: &mut Vec<(i32, String)>| {
        lines.extend(command_line(&proc, pid).map(|line| (pid, line)));
    });
    lines.into_iter().flat_map(|(_, part)| part).collect()
}

fn command_line(proc: &OwnedFd, pid: i32) -> Option<String> {
    let mut buffer = [0; LONGEST_COMMAND];
    let text = files::read(proc, &format!("{pid}/cmdline"), &mut buffer).ok()?;
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
pub(super) mod tests {
    use super::*;
    use crate::world::{Fd, Object};
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};
    use test_support::{eventually, watchdog};

    /// A child that passes on what it is given, and sleeps until then.
    pub(in crate::scan) fn cat() -> Child {
        let mut cat = Command::new(test_children::path());
        cat.arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped());
        cat.spawn().expect("a test child")
    }

    pub(in crate::scan) fn pid_of(child: &Child) -> i32 {
        child.id().cast_signed()
    }

    /// True if it sleeps in a read of its stdin.
    fn reads(world: &World, pid: i32) -> bool {
        let process = world.processes.get(&pid);
        process.is_some_and(|one| one.threads.iter().all(|t| t.wait == Wait::Read(0)))
    }

    #[test]
    fn who_has_slept_since_is_not_read_again() {
        let _watchdog = watchdog("who_has_slept_since_is_not_read_again");
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut child = cat();
        let pid = pid_of(&child);
        let mut before = look().unwrap();
        eventually(|| {
            before = look().unwrap();
            reads(&before, pid)
        });
        // Nobody has it: it is seen again only where nothing was read.
        let mark = Fd {
            number: i32::MAX,
            of: Object::Other,
            read: true,
            write: true,
        };
        let is_marked = |world: &World, pid| world.processes[&pid].fd(i32::MAX).is_some();
        for pid in [pid, own] {
            let process = before.processes.get_mut(&pid).unwrap();
            process.fds.as_mut().unwrap().push(mark.clone());
        }
        let since = look_since(&before).unwrap();
        assert!(is_marked(&since, pid) && reads(&since, pid));
        assert!(!is_marked(&since, own), "this process runs");
        // It wakes up, and sleeps as before.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        let mut byte = [0];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut byte)
            .unwrap();
        let mut since = look_since(&before).unwrap();
        assert!(!is_marked(&since, pid));
        eventually(|| {
            since = look_since(&before).unwrap();
            reads(&since, pid)
        });
        assert!(!is_marked(&since, pid));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn of_a_pipe_that_is_waited_for_the_ends_are_told() {
        let _watchdog = watchdog("of_a_pipe_that_is_waited_for_the_ends_are_told");
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let (_read, unused) = std::io::pipe().unwrap();
        let mut child = cat();
        let mut world = look().unwrap();
        eventually(|| {
            world = look().unwrap();
            reads(&world, pid_of(&child))
        });
        let ends = |end: &dyn std::os::fd::AsRawFd| {
            let fd = world.processes[&own].fd(end.as_raw_fd()).unwrap();
            (fd.read, fd.write)
        };
        assert_eq!(ends(child.stdin.as_ref().unwrap()), (false, true));
        assert_eq!(ends(&unused), (true, true));
        let stdin = world.processes[&pid_of(&child)].fd(0).unwrap();
        assert!(stdin.read && !stdin.write);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn many_are_looked_at_on_several_threads() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let proc = open_proc().unwrap();
        for place in [0, among::MANY / 2, among::MANY - 1] {
            // Nobody has the largest of numbers.
            let mut pids = vec![i32::MAX; among::MANY];
            pids[place] = own;
            let mut world = World::default();
            add_these(&proc, &pids, &World::default(), &mut world);
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
