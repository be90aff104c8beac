//! Mutexes that processes share: which thread holds one, by the word that the waiter sleeps at
//! and what glibc has beside it.

use std::os::fd::BorrowedFd;

use super::sets;
use crate::wait::{Mutex, Place};

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
