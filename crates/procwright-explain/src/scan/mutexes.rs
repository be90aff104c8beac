//! Mutexes that processes share: which thread holds one, by the word that the waiter sleeps at
//! and what glibc has beside it, and whose that thread is.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{files, maps, sets};
use crate::wait::{Mutex, Place, Wait};
use crate::world::{Owner, Process, World};

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
const HARMLESS: u32 = 3 | 256 | 512;

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
    let owner = match operation {
        LOCK_PI | LOCK_PI2 => u32::from_ne_bytes(sets::memory(dir, at)?) & OWNER,
        WAIT => holder(&sets::memory::<SIZE>(dir, at)?, expected)?,
        _ => return None,
    };
    let owner = i32::try_from(owner).ok().filter(|owner| *owner > 0)?;
    Some(Mutex { owner, place })
}

/// The holder that these bytes tell of, if they are a mutex that is waited for.
fn holder(bytes: &[u8; SIZE], expected: u32) -> Option<u32> {
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
    (is_one && is_held && lock == expected).then_some(holder)
}

/// Whose the threads are that hold the mutexes which are waited for, by the number of the thread
/// that waits.
pub(super) fn owners(proc: &OwnedFd, world: &World) -> BTreeMap<i32, Owner> {
    let mut owners = BTreeMap::new();
    for process in world.processes.values() {
        for thread in &process.threads {
            if let Wait::Futex {
                mutex: Some(mutex), ..
            } = &thread.wait
            {
                owners.insert(thread.tid, owner(proc, world, mutex));
            }
        }
    }
    owners
}

fn owner(proc: &OwnedFd, world: &World, mutex: &Mutex) -> Owner {
    let found = files::open_dir(proc, &mutex.owner.to_string())
        .and_then(|dir| match maps::has(dir.as_fd(), &mutex.place)? {
            // Its number may be another's by now, who has not this memory.
            false => Ok(None),
            true => process_of(&dir).map(Some),
        })
        .or_else(|error| match files::is_gone(&error) {
            true => Ok(None),
            false => Err(error),
        });
    // A number of another pid namespace means another thread, or none.
    let certain = !has_other_numbers(proc, world, &mutex.place);
    match found {
        Ok(Some(pid)) => Owner::Process { pid, certain },
        Ok(None) if certain => Owner::Gone,
        _ => Owner::Unknown,
    }
}

/// The process that a thread is of.
fn process_of(dir: &OwnedFd) -> io::Result<i32> {
    let mut buffer = [0; 1024];
    let text = files::read(dir, "status", &mut buffer)?;
    let pid = files::field(text, "Tgid:").and_then(files::number);
    pid.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// True if a process of another pid namespace may have this place in its memory.
fn has_other_numbers(proc: &OwnedFd, world: &World, place: &Place) -> bool {
    let unseen = &world.unseen;
    let may_have = |process: &Process| {
        let dir = files::open_dir(proc, &process.pid.to_string());
        match dir.and_then(|dir| maps::has(dir.as_fd(), place)) {
            Ok(has) => has,
            Err(error) => !files::is_gone(&error),
        }
    };
    let mut nested = world.processes.values().filter(|one| one.nested);
    unseen.hidepid || unseen.hurried || unseen.namespace || nested.any(may_have)
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
        for kind in [SHARED, SHARED | 1, SHARED | 512] {
            assert_eq!(holder(&bytes(2, 7, kind), 2), Some(7), "{kind}");
        }
        let robust = bytes(7 | WAITERS, 7, SHARED | ROBUST);
        assert_eq!(holder(&robust, 7 | WAITERS), Some(7));
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
