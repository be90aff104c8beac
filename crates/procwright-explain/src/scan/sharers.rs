//! Whose the threads are that hold the mutexes which are waited for, and who else has these in
//! its memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{among, files, maps, process};
use crate::wait::{Mutex, Place, Wait};
use crate::world::{Owner, Sharers, World};

/// Adds who holds the mutexes that are waited for, and who else could unlock them.
pub(super) fn add(proc: &OwnedFd, world: &mut World) {
    let waits: Vec<(i32, Mutex)> = waits(world).collect();
    let sharing = sharing(proc, world, &waits);
    // Many may wait for one.
    let mut known: BTreeMap<(i32, Place), Owner> = BTreeMap::new();
    let mut owners = BTreeMap::new();
    let mut sharers = BTreeMap::new();
    for (tid, mutex) in waits {
        let place = mutex.place;
        let certain = || !sharing.has_other_numbers(world, &place);
        let owner = known
            .entry((mutex.owner, place))
            .or_insert_with(|| owner(proc, &mutex, certain()));
        owners.insert(tid, *owner);
        if mutex.anyone_unlocks {
            let sharers = sharers.entry(place);
            sharers.or_insert_with(|| sharing.sharers(world, &place));
        }
    }
    world.lookers.extend(sharing.lookers);
    (world.mutexes, world.sharers) = (owners, sharers);
}

/// The threads that wait for a mutex, with it.
fn waits(world: &World) -> impl Iterator<Item = (i32, Mutex)> {
    let threads = world.processes.values().flat_map(|one| &one.threads);
    threads.filter_map(|thread| match &thread.wait {
        Wait::Futex { mutex, .. } => mutex.map(|mutex| (thread.tid, mutex)),
        _ => None,
    })
}

fn owner(proc: &OwnedFd, mutex: &Mutex, certain: bool) -> Owner {
    let found = files::open_dir(proc, &mutex.owner.to_string()).and_then(|dir| {
        let Some(pid) = process_of(&dir)? else {
            return Ok(Owner::Gone);
        };
        let found = maps::having(dir.as_fd(), &[mutex.place])?;
        match found.is_some_and(|found| !found.is_empty()) {
            true => Ok(Owner::Process { pid, certain }),
            false => Ok(Owner::Left),
        }
    });
    // A number of another pid namespace means another thread, or none.
    match found {
        Ok(owner @ Owner::Process { .. }) => owner,
        Ok(owner) if certain => owner,
        Err(error) if certain && files::is_gone(&error) => Owner::Gone,
        _ => Owner::Unknown,
    }
}

/// The process that a thread is of, unless the thread has ended.
fn process_of(dir: &OwnedFd) -> io::Result<Option<i32>> {
    let mut buffer = [0; 1024];
    let text = files::read(dir, "status", &mut buffer)?;
    let state = files::field(text, "State:").and_then(<[u8]>::first);
    if matches!(state, Some(b'Z' | b'X' | b'x')) {
        return Ok(None);
    }
    let pid = files::field(text, "Tgid:").and_then(files::number);
    pid.map(Some)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Which processes have which of the places in memory that are asked about.
#[derive(Default)]
struct Sharing {
    having: BTreeMap<Place, BTreeSet<i32>>,
    /// Processes that may have any of them.
    unreadable: BTreeSet<i32>,
    /// Numbers of the threads that have looked.
    lookers: BTreeSet<i32>,
}

/// Asks each process once which of these mutexes it has in its memory. Of those that their holder
/// alone unlocks it matters of a process of another pid namespace only.
fn sharing(proc: &OwnedFd, world: &World, waits: &[(i32, Mutex)]) -> Sharing {
    let places = |wanted: &dyn Fn(&Mutex) -> bool| -> Vec<Place> {
        let wanted = waits.iter().filter(|(_, mutex)| wanted(mutex));
        let places: BTreeSet<Place> = wanted.map(|(_, mutex)| mutex.place).collect();
        places.into_iter().collect()
    };
    let (all, of_anyone) = (places(&|_| true), places(&|mutex| mutex.anyone_unlocks));
    let wanted = |pid: i32| match world.processes.get(&pid).is_some_and(|one| !one.nested) {
        true => &of_anyone,
        false => &all,
    };
    let living = world.processes.values().filter(|process| !process.gone);
    let pids = living.map(|process| process.pid);
    let pids: BTreeSet<i32> = pids.chain(world.unseen.processes.iter().copied()).collect();
    let pids = pids.into_iter().filter(|pid| !wanted(*pid).is_empty());
    let pids: Vec<i32> = pids.collect();
    let parts = among::gather(&pids, |pid, part: &mut Sharing| {
        match having(proc, pid, wanted(pid)) {
            Ok(places) => {
                for place in places {
                    part.having.entry(place).or_default().insert(pid);
                }
            }
            Err(error) if files::is_gone(&error) => {}
            Err(_) => {
                part.unreadable.insert(pid);
            }
        }
    });
    let mut sharing = Sharing::default();
    for (looker, part) in parts {
        sharing.lookers.insert(looker);
        sharing.unreadable.extend(part.unreadable);
        for (place, pids) in part.having {
            sharing.having.entry(place).or_default().extend(pids);
        }
    }
    sharing
}

/// The places that a process has in its memory.
fn having(proc: &OwnedFd, pid: i32, places: &[Place]) -> io::Result<Vec<Place>> {
    let dir = files::open_dir(proc, &pid.to_string())?;
    match maps::having(dir.as_fd(), places)? {
        Some(found) => Ok(found),
        None if process::stat(&dir, "stat")?.is_gone() => Ok(Vec::new()),
        // Its first thread has ended, and others have its memory.
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

impl Sharing {
    fn having(&self, place: &Place) -> BTreeSet<i32> {
        self.having.get(place).cloned().unwrap_or_default()
    }

    fn sharers(&self, world: &World, place: &Place) -> Sharers {
        Sharers {
            pids: self.having(place),
            all_seen: self.unreadable.is_empty() && !hides_processes(world),
        }
    }

    /// True if a process of another pid namespace may have this place in its memory.
    fn has_other_numbers(&self, world: &World, place: &Place) -> bool {
        let having = self.having(place);
        let mut may_have = having.iter().chain(&self.unreadable);
        hides_processes(world)
            || may_have.any(|pid| world.processes.get(pid).is_none_or(|one| one.nested))
    }
}

/// True if there may be processes that are in no list.
fn hides_processes(world: &World) -> bool {
    world.unseen.hidepid || world.unseen.hurried || world.unseen.namespace
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{look, partial};
    use procwright_os::shared_memory::{self, Region};

    #[test]
    fn who_has_a_place_in_memory_is_found() {
        let file = shared_memory::create(4096).expect("a file in memory");
        let region = Region::map(file.as_fd(), 0, 4096, true).expect("a mapping");
        let word: &std::sync::atomic::AtomicU32 = region.atomic(64);
        let at = std::ptr::from_ref(word).addr() as u64;
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let proc = look::open_proc().unwrap();
        let dir = files::open_dir(&proc, &own.to_string()).unwrap();
        let maps::Memory::Shared(place) = maps::memory(dir.as_fd(), at) else {
            panic!("memory that is shared");
        };
        let mut world = partial::own_family();
        let mutex = |anyone_unlocks| Mutex {
            owner: own,
            place,
            anyone_unlocks,
        };
        let asked = sharing(&proc, &world, &[(1, mutex(true))]);
        let found = asked.sharers(&world, &place);
        assert!(found.pids.contains(&own) && found.all_seen, "{found:?}");
        assert!(!asked.has_other_numbers(&world, &place));
        // Nobody but those of other pid namespaces is asked about others.
        let asked = sharing(&proc, &world, &[(1, mutex(false))]);
        assert!(asked.having(&place).is_empty());
        world.processes.get_mut(&own).unwrap().nested = true;
        let asked = sharing(&proc, &world, &[(1, mutex(false))]);
        assert!(asked.has_other_numbers(&world, &place));
        // One that may not be looked at may have it.
        let unreadable = Sharing {
            unreadable: BTreeSet::from([1]),
            ..Sharing::default()
        };
        assert!(!unreadable.sharers(&world, &place).all_seen);
        drop(region);
        let asked = sharing(&proc, &world, &[(1, mutex(true))]);
        assert!(asked.having(&place).is_empty());
    }
}
