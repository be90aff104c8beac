//! Looks at some of all processes, and at the others as little as a question needs.
//!
//! What costs most is to learn who has what open, since the system has no list of holders: the
//! links of all descriptors of all processes have to be read. [`family`] does without. Where
//! somebody waits for others by a descriptor, [`add_links`] reads the links, and of whom they
//! show to matter [`outline_these`] reads whose child it is, and [`look_at`] all. Those that come
//! meanwhile are left out, so that nothing is proven by such looks.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::os::fd::OwnedFd;

use super::look::{add, add_surroundings, add_these, chase, known, numbers, open_proc};
use super::{among, children, descriptors, files, kin, process};
use crate::world::{Fd, Object, Others, World};

/// Generations of a family after which all others are looked at, too: somebody has children as fast
/// as they are looked at.
const GENERATIONS: usize = 1024;

/// Questions to all of a family, of which one has to tell of nobody new. Where processes come and go
/// all the time none would be the last: of 500 that do a look took 20 s and more.
const ROUNDS: usize = 4;

/// Lists of one process's children of which one has to tell of nobody new.
const LISTS: usize = 32;

/// Looks at these processes alone, with all that descends from them.
///
/// Of all others an outline is made where the system does not list children.
pub(crate) fn family(pids: &[i32]) -> io::Result<World> {
    family_of(&open_proc()?, pids.to_vec(), &World::default())
}

fn family_of(proc: &OwnedFd, asked: Vec<i32>, before: &World) -> io::Result<World> {
    if !children::are_listed() {
        return outline();
    }
    let children = |pids: &[i32], world: &World| children_of(proc, pids, world);
    match walk(proc, asked, before, children) {
        Some(mut world) => {
            add_surroundings(proc, &mut world);
            Ok(world)
        }
        None => outline(),
    }
}

/// Looks at these and at whom `children` tells to be theirs, and so on. `None` where that does not
/// come to an end, or where it does not tell.
///
/// When nobody new is told of, all are asked once more. A child may have gone over to one who was
/// asked before: 1. a parent is asked, or the first thread of one; 2. a process that descends from
/// it, and for which it is the subreaper, ends, or another thread does; 3. the child of that is now
/// a child of the first; 4. the one that has ended tells of nobody. One that goes over twice, the
/// second time while all are asked once more, may still be missed.
fn walk(
    proc: &OwnedFd,
    mut next: Vec<i32>,
    before: &World,
    mut children: impl FnMut(&[i32], &World) -> Option<Vec<i32>>,
) -> Option<World> {
    let mut world = World {
        others: Others::Unasked,
        ..World::default()
    };
    // One that is told of and not there, as others hide it, is asked for once.
    let mut sought = BTreeSet::new();
    let mut rounds = 0;
    for _ in 0..GENERATIONS {
        next.retain(|pid| sought.insert(*pid));
        if next.is_empty() {
            if rounds == ROUNDS {
                return None;
            }
            rounds += 1;
            let all: Vec<i32> = world.processes.keys().copied().collect();
            next = children(&all, &world)?;
            if next.iter().all(|pid| sought.contains(pid)) {
                return Some(world);
            }
            continue;
        }
        add_these(proc, &next, before, &mut world);
        // Behind the look, which so cannot have seen one wait for a child that is not listed.
        next = children(&next, &world)?;
    }
    None
}

/// Adds outlines of the children of this process. False where they are not to be had: the system
/// does not list them, or a list changes as fast as it is read.
pub(crate) fn add_children(world: &mut World, parent: i32) -> io::Result<bool> {
    if !children::are_listed() {
        return Ok(false);
    }
    let proc = open_proc()?;
    // Of a thread that ends meanwhile they go to one that was asked before.
    let mut children = BTreeSet::new();
    for _ in 0..LISTS {
        let Some(listed) = children_of(&proc, &[parent], world) else {
            return Ok(false);
        };
        let known = children.len();
        children.extend(listed);
        if children.len() == known {
            children.retain(|pid| !world.processes.contains_key(pid));
            outline_these(world, &children)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds whom these trace. False if that adds nothing. All are asked once, since nobody else than
/// the traced ones tells.
pub(crate) fn add_traced(world: &mut World, tracers: &BTreeSet<i32>) -> io::Result<bool> {
    let all = match world.traced.take() {
        Some(all) => all,
        None => traced(world)?,
    };
    let mut has_more = false;
    for &(pid, tracer) in all.iter().filter(|(_, tracer)| tracers.contains(tracer)) {
        if !world.processes.contains_key(&pid) {
            outline_these(world, &BTreeSet::from([pid]))?;
        }
        if let Some(process) = world.processes.get_mut(&pid) {
            has_more |= process.tracer != tracer;
            process.tracer = tracer;
        }
    }
    world.traced = Some(all);
    Ok(has_more)
}

/// Those who are traced, each with his tracer, of all who were not looked at.
fn traced(world: &mut World) -> io::Result<Vec<(i32, i32)>> {
    let mut there = numbers(&open_proc()?)?;
    let is_whole = |pid: &i32| world.processes.get(pid).is_some_and(|one| !one.is_outline);
    there.retain(|pid| !is_whole(pid) && !world.kernel.contains(pid));
    let mut all = with_tracers(world, &there)?;
    all.retain(|(_, tracer)| *tracer != 0);
    Ok(all)
}

/// These, each with his tracer, 0 without one; those are left out who do not tell.
fn with_tracers(world: &mut World, pids: &[i32]) -> io::Result<Vec<(i32, i32)>> {
    let proc = open_proc()?;
    let parts = among::gather(pids, |pid, found: &mut Vec<(i32, i32)>| {
        let tracer = process::tracer(&proc, &format!("{pid}/status"));
        found.extend(tracer.ok().map(|tracer| (pid, tracer)));
    });
    let mut all = Vec::new();
    for (looker, part) in parts {
        world.lookers.insert(looker);
        all.extend(part);
    }
    Ok(all)
}

/// The children of these; `None` where a list changes as fast as it is read.
fn children_of(proc: &OwnedFd, pids: &[i32], world: &World) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for process in pids.iter().filter_map(|pid| world.processes.get(pid)) {
        let Ok(dir) = files::open_dir(proc, &process.pid.to_string()) else {
            continue;
        };
        for thread in &process.threads {
            match children::of_thread(&dir, thread.tid) {
                Ok(children) => found.extend(children),
                Err(error) if files::is_gone(&error) => {}
                Err(_) => return None,
            }
        }
    }
    Some(found)
}

/// Makes an outline of all: whose children they are, and what they have open.
fn outline() -> io::Result<World> {
    let mut world = World::default();
    add_links(&mut world, &BTreeSet::new())?;
    outline_others(&mut world)?;
    connect(&mut world)?;
    Ok(world)
}

/// Adds what all others have open, and looks at these among them. Of those of whom it may not be
/// seen, or does not tell all, an outline is added.
pub(crate) fn add_links(world: &mut World, looked_at: &BTreeSet<i32>) -> io::Result<()> {
    add_links_by(world, looked_at, |proc, fd| descriptors::read(proc, fd))
}

/// As [`add_links`], where pipes alone are looked for: what has a path is added as such, until
/// [`tell_paths`] asks for it.
pub(crate) fn add_pipes(world: &mut World, looked_at: &BTreeSet<i32>) -> io::Result<()> {
    add_links_by(world, looked_at, |proc, fd| {
        descriptors::read_links(proc, fd)
    })
}

/// Asks what all that has a path is, where that was left out. False if it was nowhere.
pub(crate) fn tell_paths(world: &mut World) -> io::Result<bool> {
    let has_path = |fds: &Vec<Fd>| fds.iter().any(|fd| fd.of == Object::Path);
    let mut lists: BTreeMap<i32, Vec<Fd>> = BTreeMap::new();
    for_each_list(world, |pid, fds| {
        if has_path(fds) {
            lists.insert(pid, std::mem::take(fds));
        }
    });
    if lists.is_empty() {
        return Ok(false);
    }
    let proc = open_proc()?;
    let pids: Vec<i32> = lists.keys().copied().collect();
    let parts = among::gather(&pids, |pid, part: &mut Part| {
        let mut fds = lists[&pid].clone();
        if let Err(error) = descriptors::tell_paths(&proc, &format!("{pid}/fd"), &mut fds) {
            // It has ended, and with it its descriptors, or nobody may see them any more.
            fds.retain(|fd| fd.of != Object::Path);
            if !files::is_gone(&error) {
                part.sealed.push(pid);
            }
        }
        part.links.insert(pid, fds);
    });
    let mut told = BTreeMap::new();
    for (looker, mut part) in parts {
        world.lookers.insert(looker);
        told.append(&mut part.links);
        world.unseen.processes.append(&mut part.sealed);
    }
    world.unseen.processes.sort_unstable();
    for_each_list(world, |pid, fds| {
        if let Some(of_pid) = told.remove(&pid) {
            *fds = of_pid;
        }
    });
    Ok(true)
}

/// Calls `each` for the descriptors of every process, of those whose links alone are known too.
fn for_each_list(world: &mut World, mut each: impl FnMut(i32, &mut Vec<Fd>)) {
    for process in world.processes.values_mut() {
        let pid = process.pid;
        process.fds.iter_mut().for_each(|fds| each(pid, fds));
    }
    if let Others::Links(links) = &mut world.others {
        links.iter_mut().for_each(|(pid, fds)| each(*pid, fds));
    }
}

fn add_links_by(
    world: &mut World,
    looked_at: &BTreeSet<i32>,
    read: impl Fn(&OwnedFd, &str) -> io::Result<Vec<Fd>> + Sync,
) -> io::Result<()> {
    let proc = open_proc()?;
    let known = known(world);
    let mut there = numbers(&proc)?;
    there.retain(|pid| !known.contains(pid));
    let parts = among::gather(&there, |pid, part: &mut Part| {
        if looked_at.contains(&pid) {
            return add(&proc, pid, &mut part.world);
        }
        match read(&proc, &format!("{pid}/fd")) {
            Ok(fds) => _ = part.links.insert(pid, fds),
            Err(error) if files::is_gone(&error) => {}
            Err(_) => part.sealed.push(pid),
        }
    });
    let (mut links, mut sealed) = (BTreeMap::new(), BTreeSet::new());
    for (looker, mut part) in parts {
        world.append(looker, part.world);
        links.append(&mut part.links);
        sealed.extend(part.sealed);
    }
    let is_ring = |fd: &Fd| fd.of == Object::Ring;
    let with_ring = links.iter().filter(|(_, fds)| fds.iter().any(is_ring));
    let with_ring: Vec<i32> = with_ring.map(|(pid, _)| *pid).collect();
    world.others = Others::Links(links);
    outline_these(world, &sealed.into_iter().chain(with_ring).collect())?;
    Ok(())
}

/// What one thread has found of others.
#[derive(Default)]
struct Part {
    world: World,
    links: BTreeMap<i32, Vec<Fd>>,
    /// Those whose descriptors may not be seen.
    sealed: Vec<i32>,
}

/// Those of whom the links alone are known who have one of these open.
pub(crate) fn holders(world: &World, wanted: &HashSet<Object>) -> BTreeSet<i32> {
    let Others::Links(links) = &world.others else {
        return BTreeSet::new();
    };
    let holds = |fds: &Vec<Fd>| fds.iter().any(|fd| wanted.contains(&fd.of));
    let holders = links.iter().filter(|(_, fds)| holds(fds));
    holders.map(|(pid, _)| *pid).collect()
}

/// Adds outlines of all of whom the links alone are known.
pub(crate) fn outline_others(world: &mut World) -> io::Result<()> {
    if let Others::Links(links) = &world.others {
        let all = links.keys().copied().collect();
        outline_these(world, &all)?;
    }
    world.others = Others::None;
    Ok(())
}

/// Adds outlines of these: whose children they are, and what they have open.
pub(crate) fn outline_these(world: &mut World, pids: &BTreeSet<i32>) -> io::Result<()> {
    let proc = open_proc()?;
    let links: BTreeMap<i32, Vec<Fd>> = match &mut world.others {
        Others::Links(links) => {
            let known = pids.iter().filter_map(|pid| links.remove_entry(pid));
            known.collect()
        }
        Others::None | Others::Unasked => BTreeMap::new(),
    };
    let pids: Vec<i32> = pids.iter().copied().collect();
    let outlines = among::gather(&pids, |pid, part: &mut World| {
        outline_one(&proc, pid, links.contains_key(&pid), part);
    });
    for (looker, part) in outlines {
        world.append(looker, part);
    }
    for (pid, fds) in links {
        if let Some(process) = world.processes.get_mut(&pid) {
            process.fds = Some(fds);
        }
    }
    Ok(())
}

/// Adds an outline of one process, with what it has open unless that is known.
fn outline_one(proc: &OwnedFd, pid: i32, is_known: bool, world: &mut World) {
    match process::outline(proc, &format!("{pid}/stat"), pid) {
        Ok(Some(mut process)) => {
            if !is_known && !process.gone {
                match descriptors::read(proc, &format!("{pid}/fd")) {
                    Ok(fds) => process.fds = Some(fds),
                    Err(error) if files::is_gone(&error) => return,
                    Err(_) => world.unseen.processes.push(pid),
                }
            }
            world.processes.insert(pid, process);
        }
        Ok(None) => _ = world.kernel.insert(pid),
        // Of one that has ended there is nothing to be seen; of another there would be.
        Err(error) if files::is_gone(&error) => {}
        Err(_) => world.unseen.processes.push(pid),
    }
}

/// Adds what is between the processes of `world`, as far as it has looked at them.
pub(crate) fn connect(world: &mut World) -> io::Result<()> {
    add_surroundings(&open_proc()?, world);
    Ok(())
}

/// Looks at these processes of `world`, and at what is between all of them.
pub(crate) fn look_at(world: &mut World, pids: &BTreeSet<i32>) -> io::Result<()> {
    look_at_each(world, pids)?;
    connect(world)
}

/// Looks at these processes of `world`, and not at what is between them.
///
/// Their descriptors are read anew, behind the threads. One that has gone remains as an outline
/// of what it was.
pub(crate) fn look_at_each(world: &mut World, pids: &BTreeSet<i32>) -> io::Result<()> {
    let proc = open_proc()?;
    let mut outlines = BTreeMap::new();
    for pid in pids {
        outlines.extend(world.processes.remove_entry(pid));
    }
    if let Others::Links(links) = &mut world.others {
        links.retain(|pid, _| !pids.contains(pid));
    }
    world.unseen.processes.retain(|pid| !pids.contains(pid));
    let pids: Vec<i32> = pids.iter().copied().collect();
    add_these(&proc, &pids, &World::default(), world);
    for (pid, mut outline) in outlines {
        let is_known = world.processes.contains_key(&pid) || world.unseen.processes.contains(&pid);
        if !is_known {
            outline.gone = true;
            outline.fds = None;
            world.processes.insert(pid, outline);
        }
    }
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

/// Adds to the outlines of `world`, or to those among `only`, who traces them.
pub(crate) fn add_tracers(world: &mut World, only: Option<&BTreeSet<i32>>) -> io::Result<()> {
    let all = world.processes.values();
    let is_asked = |pid| only.is_none_or(|only| only.contains(&pid));
    let outlines = all.filter(|one| one.is_outline && !one.gone && is_asked(one.pid));
    let pids: Vec<i32> = outlines.map(|process| process.pid).collect();
    for (pid, tracer) in with_tracers(world, &pids)? {
        if let Some(process) = world.processes.get_mut(&pid) {
            process.tracer = tracer;
        }
    }
    Ok(())
}

/// Looks again at `pids` and, whether they have ended, at the children that they may wait for, and
/// at those that have come since `first`. All others are as `first` has seen them, without those
/// that have gone. Where `first` has not looked for others, this does not either.
pub(crate) fn look_again(first: &World, pids: &BTreeSet<i32>) -> io::Result<World> {
    let proc = open_proc()?;
    if let Others::Unasked = first.others {
        let mut world = family_of(&proc, pids.iter().copied().collect(), first)?;
        world.traced.clone_from(&first.traced);
        return Ok(world);
    }
    let there = numbers(&proc)?;
    let is_there: BTreeSet<i32> = there.iter().copied().collect();
    let mut world = first.clone();
    let stays = |pid: &i32| is_there.contains(pid) && !pids.contains(pid);
    world.processes.retain(|pid, _| stays(pid));
    if let Others::Links(links) = &mut world.others {
        links.retain(|pid, _| stays(pid));
    }
    world.kernel.retain(stays);
    world.unseen.processes.retain(stays);
    let children = first.awaited(pids).into_iter();
    let children: Vec<i32> = children.filter(stays).collect();
    kin::renew(&proc, &children, &mut world);
    if first.is_partial() {
        let known = known(&world);
        let others = there.into_iter().filter(|pid| !known.contains(pid));
        let others: Vec<i32> = others.collect();
        add_these(&proc, &others, first, &mut world);
    } else {
        chase(&proc, there, first, &mut world)?;
    }
    add_surroundings(&proc, &mut world);
    Ok(world)
}

/// This process and its family, itself as a whole, also where children are not listed.
#[cfg(test)]
pub(crate) fn own_family() -> World {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut world = family(&[own]).expect("a look");
    look_at(&mut world, &BTreeSet::from([own])).expect("a look");
    world
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::look::look;
    use crate::scan::look::tests::{cat, pid_of};
    use crate::wait::{Children, Wait};
    use std::os::fd::AsRawFd;
    use test_support::{eventually, watchdog};

    #[test]
    fn a_child_that_has_ended_since_is_seen_to_have() {
        let _watchdog = watchdog("a_child_that_has_ended_since_is_seen_to_have");
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let (mut ended, mut lives) = (cat(), cat());
        let mut first = look().unwrap();
        let mut waits_for = |children| {
            let own = first.processes.get_mut(&own).unwrap();
            own.threads.truncate(1);
            own.threads[0].wait = Wait::Child(children);
            first.clone()
        };
        let pids = [&ended, &lives].map(pid_of);
        let (first, of_another) = (waits_for(Children::Any), waits_for(Children::One(pids[1])));
        ended.kill().unwrap();
        let mut second = first.clone();
        // Nobody has reaped it.
        eventually(|| {
            second = look_again(&first, &BTreeSet::from([own])).unwrap();
            second.processes[&pids[0]].gone
        });
        assert!(!second.processes[&pids[1]].gone);
        // Who waits for one child is released by no other.
        second = look_again(&of_another, &BTreeSet::from([own])).unwrap();
        assert!(!second.processes[&pids[0]].gone);
        ended.wait().unwrap();
        second = look_again(&first, &BTreeSet::from([own])).unwrap();
        assert!(!second.processes.contains_key(&pids[0]));
        lives.kill().unwrap();
        lives.wait().unwrap();
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
        assert!(world.is_partial());
    }

    #[test]
    fn a_family_is_looked_at_alone_and_the_links_show_who_else_matters() {
        let _watchdog = watchdog("a_family_is_looked_at_alone");
        if !children::are_listed() {
            return test_support::skip("a_family_is_looked_at_alone", "children are not listed");
        }
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let parent = rustix::process::getppid().expect("a parent");
        let parent = parent.as_raw_nonzero().get();
        let mut child = cat();
        let pid = pid_of(&child);
        let world = family(&[own]).unwrap();
        let whole = |world: &World, pid| world.processes.get(&pid).map(|one| !one.is_outline);
        assert_eq!([own, pid].map(|pid| whole(&world, pid)), [Some(true); 2]);
        assert!(!world.processes.contains_key(&parent), "it is not of it");
        assert!(matches!(world.others, Others::Unasked));
        // From outside of it the other end of a pipe is found by its links.
        let mut world = family(&[pid]).unwrap();
        eventually(|| {
            world = family(&[pid]).unwrap();
            world.processes[&pid].threads[0].wait == Wait::Read(0)
        });
        let pipe = HashSet::from([world.processes[&pid].fd(0).unwrap().of]);
        add_links(&mut world, &BTreeSet::new()).unwrap();
        let found = holders(&world, &pipe);
        assert!(
            found.contains(&own) && !found.contains(&parent),
            "{found:?}"
        );
        outline_these(&mut world, &found).unwrap();
        assert_eq!(whole(&world, own), Some(false));
        assert!(holders(&world, &pipe).is_empty(), "they have an outline");
        outline_others(&mut world).unwrap();
        assert!(world.processes[&own].fds.is_some() && whole(&world, parent) == Some(false));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_child_that_goes_over_to_one_who_was_asked_before_is_found() {
        let proc = open_proc().unwrap();
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut child = cat();
        let pid = pid_of(&child);
        let mut times = 0;
        let late = |pids: &[i32], _: &World| {
            times += usize::from(pids.contains(&own));
            Some(if times > 1 { vec![pid] } else { Vec::new() })
        };
        let world = walk(&proc, vec![own], &World::default(), late).expect("an end");
        assert!(world.processes.keys().eq(&BTreeSet::from([own, pid])));
        // Nobody has such a number, whom a list may yet tell of.
        let hidden = |_: &[i32], _: &World| Some(vec![i32::MAX]);
        let world = walk(&proc, vec![own], &World::default(), hidden).expect("an end");
        assert!(world.processes.keys().eq([&own]));
        let mut number = i32::MAX / 2;
        let ever_new = |_: &[i32], _: &World| {
            number += 1;
            Some(vec![number])
        };
        assert!(walk(&proc, vec![own], &World::default(), ever_new).is_none());
        // Nobody has a child, but there is a new one whenever all are asked.
        let (mut number, mut asked) = (i32::MAX / 2, 0);
        let ever_one_more = |pids: &[i32], _: &World| {
            let is_all = pids.contains(&own);
            asked += usize::from(is_all);
            number += 1;
            Some(if is_all { vec![number] } else { Vec::new() })
        };
        assert!(walk(&proc, vec![own], &World::default(), ever_one_more).is_none());
        assert!(asked <= 1 + ROUNDS, "{asked}");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn an_outline_has_what_is_between_processes() {
        let (_one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(!outline().unwrap().peers.is_empty());
    }

    #[test]
    fn where_pipes_are_looked_for_it_is_asked_later_what_has_a_path() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let numbers = [file.as_raw_fd(), reader.as_raw_fd()];
        let of = |world: &World| -> [Object; 2] {
            let Others::Links(links) = &world.others else {
                panic!("{:?}", world.others)
            };
            let of = |number| {
                links[&own]
                    .iter()
                    .find(|fd| fd.number == number)
                    .unwrap()
                    .of
            };
            numbers.map(of)
        };
        let unasked = World {
            others: Others::Unasked,
            ..World::default()
        };
        let (mut whole, mut pipes) = (unasked.clone(), unasked);
        add_links(&mut whole, &BTreeSet::new()).unwrap();
        add_pipes(&mut pipes, &BTreeSet::new()).unwrap();
        let [file, pipe] = of(&whole);
        assert!(matches!(file, Object::File { .. }) && matches!(pipe, Object::Pipe(_)));
        assert_eq!(of(&pipes), [Object::Path, pipe]);
        assert!(tell_paths(&mut pipes).unwrap());
        assert_eq!(of(&pipes), [file, pipe]);
        // Nobody has the largest of numbers: of one that has ended it is asked once.
        let Others::Links(links) = &mut pipes.others else {
            panic!("{:?}", pipes.others)
        };
        let of_another = Fd {
            number: 0,
            of: Object::Path,
            read: true,
            write: true,
        };
        links.insert(i32::MAX, vec![of_another]);
        assert!(tell_paths(&mut pipes).unwrap());
        assert!(!tell_paths(&mut pipes).unwrap(), "it is told");
    }
}
