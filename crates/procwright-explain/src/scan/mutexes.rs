//! Mutexes that processes share: which thread holds one, by the word that the waiter sleeps at
//! and what glibc has beside it, whose that thread is, and who else could unlock it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{among, files, maps, process, sets};
use crate::wait::{Mutex, Place, Wait};
use crate::world::{Owner, Sharers, World};

/// `FUTEX_WAIT`, `FUTEX_LOCK_PI`, `FUTEX_LOCK_PI2`. glibc locks with the first, and waits for
/// conditions, semaphores and read-write locks with `FUTEX_WAIT_BITSET`: what lies behind such a
/// word may be a mutex, shifted.
const WAIT: i32 = 0;
const LOCK_PI: i32 = 6;
const LOCK_PI2: i32 = 13;

/// The number of a thread in the word of a robust or PI mutex, as the kernel demands.
const OWNER: u32 = 0x3fff_ffff;
/// `FUTEX_WAITERS`, and the word of another mutex for which somebody waits.
const WAITERS: u32 = 0x8000_0000;
const CONTENDED: u32 = 2;

/// Bits of `__kind` in glibc's `pthread_mutex_t`: robust, shared by processes, and those that
/// change nothing here: the type, and whether memory transactions are tried.
const ROBUST: u32 = 16;
const SHARED: u32 = 128;
const HARMLESS: u32 = TYPE | 256 | 512;

/// The type: `PTHREAD_MUTEX_NORMAL`, which is the default, `PTHREAD_MUTEX_RECURSIVE`,
/// `PTHREAD_MUTEX_ERRORCHECK`, `PTHREAD_MUTEX_ADAPTIVE_NP`. Of the second and the third, and of all
/// robust ones, glibc refuses an unlock by who is not the holder; the kernel does of PI ones.
const TYPE: u32 = 3;
const NORMAL: u32 = 0;
const ADAPTIVE: u32 = 3;

/// Bytes from the beginning of `pthread_mutex_t` in 64-bit programs:
/// `__lock`, `__count`, `__owner`, `__nusers`, `__kind`.
const SIZE: usize = 20;
const LOCK: usize = 0;
const HOLDER: usize = 8;
const USERS: usize = 12;
const KIND: usize = 16;

/// The mutex for which a thread sleeps that found `expected` at the address `at`. `None` of any
/// other word, and of a mutex that does not tell who holds it.
///
/// The kernel knows that a thread locks a PI mutex. Of others it knows a word, so that all of
/// what is beside it has to be as glibc has it. glibc writes the holder when it has the lock, and
/// clears that before it gives it back: a thread that sleeps and is named there holds it.
pub(super) fn mutex(
    dir: BorrowedFd<'_>,
    at: u64,
    operation: i32,
    expected: u32,
    place: Place,
) -> Option<Mutex> {
    if cfg!(not(target_pointer_width = "64")) {
        return None;
    }
    let (owner, anyone_unlocks) = match operation {
        LOCK_PI | LOCK_PI2 => (u32::from_ne_bytes(sets::memory(dir, at)?) & OWNER, false),
        WAIT => holder(&sets::memory::<SIZE>(dir, at)?, expected)?,
        _ => return None,
    };
    let owner = i32::try_from(owner).ok().filter(|owner| *owner > 0)?;
    Some(Mutex {
        owner,
        place,
        anyone_unlocks,
    })
}

/// The holder that these bytes tell of, if they are a mutex that is waited for, and whether
/// anybody may unlock it.
fn holder(bytes: &[u8; SIZE], expected: u32) -> Option<(u32, bool)> {
    let at = |index: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(
            bytes.get(index..index + 4)?.try_into().ok()?,
        ))
    };
    let (lock, holder, kind) = (at(LOCK)?, at(HOLDER)?, at(KIND)?);
    let is_one = match kind & !HARMLESS {
        SHARED => lock == CONTENDED,
        kind if kind == SHARED | ROBUST => lock == holder | WAITERS,
        _ => false,
    };
    let is_held = at(USERS)? > 0;
    let anyone_unlocks = kind & ROBUST == 0 && matches!(kind & TYPE, NORMAL | ADAPTIVE);
    (is_one && is_held && lock == expected).then_some((holder, anyone_unlocks))
}

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

    fn bytes(lock: u32, holder: u32, kind: u32) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        for (at, value) in [(LOCK, lock), (HOLDER, holder), (USERS, 1), (KIND, kind)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn who_holds_a_mutex() {
        for (kind, anyone_unlocks) in [
            (SHARED, true),
            (SHARED | 1, false),
            (SHARED | 2, false),
            (SHARED | 3, true),
            (SHARED | 512, true),
        ] {
            let found = holder(&bytes(2, 7, kind), 2);
            assert_eq!(found, Some((7, anyone_unlocks)), "{kind}");
        }
        let robust = bytes(7 | WAITERS, 7, SHARED | ROBUST);
        assert_eq!(holder(&robust, 7 | WAITERS), Some((7, false)));
    }

    #[test]
    fn a_word_that_is_no_mutex_has_no_holder() {
        assert_eq!(holder(&bytes(2, 7, 0), 2), None, "not shared by processes");
        assert_eq!(holder(&bytes(1, 7, SHARED), 2), None, "another's by now");
        assert_eq!(holder(&bytes(2, 7, SHARED), 0), None, "another wait");
        let dead = bytes(7 | WAITERS | 0x4000_0000, 7, SHARED | ROBUST);
        assert_eq!(holder(&dead, 7 | WAITERS), None, "its holder has died");
        assert_eq!(holder(&bytes(2, 7, SHARED | 32), 2), None, "a PI mutex");
        let mut unheld = bytes(2, 7, SHARED);
        unheld[USERS..KIND].fill(0);
        assert_eq!(holder(&unheld, 2), None, "nobody has it");
        assert_eq!(holder(&bytes(2, 7, 0x1_0000 | SHARED), 2), None, "no kind");
    }
}
