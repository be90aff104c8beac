//! Who is held by the freezer of a cgroup, as under `docker pause` and `systemctl freeze`.
//!
//! The system shows of such a process the call that it was in, as if it slept there: with the state
//! S by the freezer of version 2, with D by that of version 1. Of version 2 the place in the kernel
//! tells, which no other state than that of a stop has: `do_freezer_trap`, or `get_signal`, where
//! the compiler has put that into it (`kernel/signal.c`). Of version 1 it may be any place, and the
//! cgroup has to be asked.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::look::open_proc;
use super::{among, files};
use crate::wait::Wait;
use crate::world::{Process, Thread, World};

/// Tells of these processes which are frozen. False if none is.
///
/// It costs a file for each, and so is asked about those alone that matter.
pub(crate) fn tell(world: &mut World, pids: &BTreeSet<i32>) -> bool {
    let Ok(proc) = open_proc() else {
        return false;
    };
    let asked = pids.iter().filter_map(|pid| world.processes.get(pid));
    let asked = asked.filter(|process| sleeps(process));
    let asked: Vec<i32> = asked.map(|process| process.pid).collect();
    let told = among::gather(&asked, |pid, told: &mut Vec<(i32, String)>| {
        let process = &world.processes[&pid];
        told.extend(cgroup_of_frozen(&proc, process).map(|cgroup| (pid, cgroup)));
    });
    let mut is_any = false;
    for (looker, part) in told {
        world.lookers.insert(looker);
        for (pid, cgroup) in part {
            is_any = true;
            if let Some(process) = world.processes.get_mut(&pid) {
                process.frozen = Some(cgroup);
                let threads = process.threads.iter_mut();
                let living = threads.filter(|thread| thread.wait != Wait::Ended);
                living.for_each(|thread| thread.wait = Wait::Frozen);
            }
        }
    }
    is_any
}

/// True if all its threads are in a state in which those of frozen processes are.
fn sleeps(process: &Process) -> bool {
    let mut threads = living(process).peekable();
    threads.peek().is_some() && threads.all(|thread| matches!(thread.state, 'S' | 'D'))
}

/// Its threads but for those that have ended, as the first may long before the others.
fn living(process: &Process) -> impl Iterator<Item = &Thread> {
    let threads = process.threads.iter();
    threads.filter(|thread| thread.wait != Wait::Ended)
}

/// The cgroup by which a process is frozen, if it is: its name is empty where it is not told.
fn cgroup_of_frozen(proc: &OwnedFd, process: &Process) -> Option<String> {
    let task = |thread: &Thread| format!("{}/task/{}", process.pid, thread.tid);
    let mut is_by_place = true;
    for thread in living(process) {
        let at_freezer = is_at_freezer(proc, &format!("{}/wchan", task(thread)))?;
        if !at_freezer && thread.state != 'D' {
            return None;
        }
        is_by_place &= at_freezer;
    }
    // That of a thread that lives: who has ended is in no cgroup any more.
    let cgroup = format!("{}/cgroup", task(living(process).next()?));
    match freezer(proc, &cgroup, is_by_place) {
        None if is_by_place => Some(String::new()),
        found => found,
    }
}

/// Whether a thread is where a freezer has it sleep, by its file `wchan`.
fn is_at_freezer(proc: &OwnedFd, wchan: &str) -> Option<bool> {
    let mut buffer = [0; 128];
    let place = files::read(proc, wchan, &mut buffer).ok()?;
    Some(is_freezer(place))
}

fn is_freezer(place: &[u8]) -> bool {
    let words = [b"get_signal".as_slice(), b"freezer", b"refrigerator"];
    let has = |word: &[u8]| place.windows(word.len()).any(|part| part == word);
    words.into_iter().any(has)
}

/// The nearest cgroup of a process that was told to freeze, if the process is frozen by it: in
/// version 2 `is_by_place` tells that, in version 1 its own cgroup does. Its file is named `cgroup`.
fn freezer(proc: &OwnedFd, cgroup: &str, is_by_place: bool) -> Option<String> {
    let mut buffer = [0; 4096];
    let text = files::read(proc, cgroup, &mut buffer).ok()?;
    let text = String::from_utf8_lossy(text);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    // HIERARCHY:CONTROLLERS:PATH, without controllers of version 2.
    text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let path = Path::new(path);
        let file = match controllers {
            "" if is_by_place => "cgroup.freeze",
            all if all.split(',').any(|one| one == "freezer") => "freezer.self_freezing",
            _ => return None,
        };
        let (root, point) = mount(&mounts, controllers, path)?;
        let says = |at: &Path, file: &str, word: &str| {
            let below = at.strip_prefix(&root).ok();
            let text = below.map(|below| std::fs::read_to_string(point.join(below).join(file)));
            text.is_some_and(|text| text.is_ok_and(|text| text.trim() == word))
        };
        if !controllers.is_empty() && !says(path, "freezer.state", "FROZEN") {
            return None;
        }
        let found = path.ancestors().find(|at| says(at, file, "1"))?;
        Some(found.to_string_lossy().into_owned())
    })
}

/// Which part of a hierarchy of cgroups, with `path` in it, is mounted where, by the text of
/// `/proc/self/mountinfo`.
fn mount(mounts: &str, controllers: &str, path: &Path) -> Option<(PathBuf, PathBuf)> {
    // ID PARENT DEVICE ROOT POINT OPTIONS … - KIND SOURCE OPTIONS
    mounts.lines().find_map(|line| {
        let (first, last) = line.split_once(" - ")?;
        let mut first = first.split(' ').skip(3).map(PathBuf::from);
        let (root, point) = (first.next()?, first.next()?);
        let mut last = last.split(' ');
        let (kind, options) = (last.next()?, last.nth(1)?);
        let has = |controller: &str| options.split(',').any(|option| option == controller);
        let fits = match controllers {
            "" => kind == "cgroup2",
            all => kind == "cgroup" && all.split(',').all(has),
        };
        (fits && path.starts_with(&root)).then_some((root, point))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        30 20 0:26 / /proc rw - proc proc rw\n\
        31 20 0:27 / /sys/fs/cgroup/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer\n\
        32 20 0:28 /a /part rw - cgroup2 cgroup2 rw\n\
        33 20 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn where_the_cgroups_are() {
        let at = |controllers, path| {
            let found = mount(MOUNTS, controllers, Path::new(path));
            found.map(|(root, point)| format!("{} at {}", root.display(), point.display()))
        };
        assert_eq!(at("", "/b").as_deref(), Some("/ at /sys/fs/cgroup"));
        assert_eq!(at("", "/a/b").as_deref(), Some("/a at /part"));
        let of_one = at("freezer", "/b");
        assert_eq!(of_one.as_deref(), Some("/ at /sys/fs/cgroup/freezer"));
        assert_eq!(at("freezer,cpu", "/b"), None);
    }

    #[test]
    fn where_a_freezer_has_them_sleep() {
        for place in ["do_freezer_trap", "get_signal", "__refrigerator"] {
            assert!(is_freezer(place.as_bytes()), "{place}");
        }
        for place in ["", "0", "pipe_read", "do_signal_stop", "hrtimer_nanosleep"] {
            assert!(!is_freezer(place.as_bytes()), "{place}");
        }
    }
}
