//! The list of the thread, and the locks of others in it, after each step.

use std::cell::UnsafeCell;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicU32;

use super::super::list::{RobustLink, RobustListHead};
use super::super::robust_lock::initialise;
use super::*;
use crate::shared_memory::Region;

fn file() -> OwnedFd {
    shared_memory::create(page_size() as u64).unwrap()
}

fn hold(file: &OwnedFd) -> PlacedWord {
    PlacedWord::hold(file.as_fd(), 0).unwrap().unwrap()
}

/// The word as others see it.
fn says(file: &OwnedFd, place: u32) -> u32 {
    let region = Region::map(file.as_fd(), 0, page_size() as u64, false).unwrap();
    let word: &AtomicU32 = region.atomic(place.into());
    word.load(Ordering::SeqCst)
}

/// A robust lock of somebody else in this process.
struct Other(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a lock is for threads.
unsafe impl Send for Other {}

impl Other {
    fn locked() -> Other {
        // SAFETY: zeroes are a lock that nobody has, in a box where it stays.
        unsafe {
            let other = Other(Box::new(std::mem::zeroed()));
            initialise(other.0.get()).unwrap();
            assert_eq!(libc::pthread_mutex_lock(other.0.get()), 0);
            other
        }
    }

    fn unlock(&self) {
        // SAFETY: it was initialised.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0.get()) }, 0);
    }

    fn try_lock(&self) -> i32 {
        // SAFETY: it was initialised.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) }
    }

    fn is(&self, entry: usize) -> bool {
        let start = self.0.get().addr();
        (start..start + size_of::<libc::pthread_mutex_t>()).contains(&entry)
    }
}

/// The list of this thread, as the kernel goes through it: where the entries are, and
/// whether it would mark their words.
fn list() -> Vec<(usize, bool)> {
    let (mut head, mut size) = (ptr::null_mut::<RobustListHead>(), 0_usize);
    // SAFETY: both are ours, and the list is this thread's own.
    unsafe {
        libc::syscall(libc::SYS_get_robust_list, 0, &mut head, &mut size);
        let end: *mut RobustLink = head.cast();
        let mut entries = Vec::new();
        let mut entry = (*head).first.load(Ordering::Relaxed);
        while entry != end {
            let word = entry.wrapping_byte_offset((*head).offset as isize);
            let word = &*word.cast::<AtomicU32>();
            let thread = LockingThread::this().number.cast_unsigned();
            let is_ours = word.load(Ordering::Relaxed) & super::super::TID_MASK == thread;
            entries.push((entry.addr(), is_ours));
            assert!(entries.len() <= 2048, "it has no end");
            // The way on comes first.
            entry = entry.cast::<*mut RobustLink>().read();
        }
        entries
    }
}

/// A new thread, since the words that a thread holds are counted.
fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn it_says_that_it_is_held_until_it_is_let_go_by_whomever() {
    aside(|| {
        for is_moved in [false, true] {
            let file = file();
            let word = hold(&file);
            let (place, value) = (word.place(), word.value());
            let thread = LockingThread::this().number.cast_unsigned();
            assert_eq!(value, WAITERS | thread);
            assert_eq!(says(&file, place), value);
            assert!(!word.has_died());
            match is_moved {
                true => aside(|| drop(word)),
                false => drop(word),
            }
            assert_eq!(says(&file, place), 0);
        }
    });
}

#[test]
fn a_thread_that_ends_has_died_and_leaves_nothing() {
    let file = file();
    let word = aside(|| hold(&file));
    assert!(word.has_died());
    let (place, thread) = (word.place(), word.thread);
    assert_eq!(
        says(&file, place) & (OWNER_DIED | super::super::TID_MASK),
        OWNER_DIED
    );
    drop(word);
    assert_eq!(says(&file, place), 0);
    // Once the kernel does not know its number any more.
    while orphaned().iter().any(|orphaned| orphaned.thread == thread) {
        std::thread::yield_now();
        sweep();
    }
}

#[test]
fn the_locks_of_others_in_the_list_stay_as_they_are() {
    aside(|| {
        let before = Other::locked();
        let (first, second) = (file(), file());
        let word = hold(&first);
        let after = Other::locked();
        let is = |expected: &[&dyn Fn(usize) -> bool]| {
            let list = list();
            assert_eq!(list.len(), expected.len(), "{list:x?}");
            for ((entry, is_marked), expected) in list.iter().zip(expected) {
                assert!(expected(*entry) && *is_marked, "{list:x?}");
            }
        };
        let place = word.lock.links();
        let ours = move |entry| place.contains(&entry);
        let is_before = |entry| before.is(entry);
        let is_after = |entry| after.is(entry);
        is(&[&is_after, &ours, &is_before]);
        // The file may hold anything: the C library does not see it.
        let region = Region::map(first.as_fd(), 0, page_size() as u64, true).unwrap();
        region.copy_in(0, &vec![0xff; page_size()]);
        aside(|| drop(word));
        // The word is released, but no other thread can take its lock out of the list.
        is(&[&is_after, &ours, &is_before]);
        assert_eq!(held_words(), 1);
        let word = hold(&second);
        let place = word.lock.links();
        let new = move |entry| place.contains(&entry);
        is(&[&new, &is_after, &is_before]);
        assert_eq!(held_words(), 1);
        drop(word);
        is(&[&is_after, &is_before]);
        assert_eq!(held_words(), 0);
        after.unlock();
        before.unlock();
        is(&[]);
    });
}

#[test]
fn the_kernel_gets_to_all_behind_it() {
    // Let go by another thread, or still held.
    for is_let_go in [true, false] {
        let file = file();
        let (other, word) = aside(|| {
            let other = Other::locked();
            let word = hold(&file);
            if is_let_go {
                aside(move || drop(word));
                return (other, None);
            }
            (other, Some(word))
        });
        assert_eq!(other.try_lock(), libc::EOWNERDEAD);
        assert!(word.is_none_or(|word| word.has_died()));
    }
}

#[test]
fn so_many_and_no_more() {
    aside(|| {
        let file = shared_memory::create((page_size() * (MAX_WORDS + 1)) as u64).unwrap();
        let hold = |number| PlacedWord::hold(file.as_fd(), (page_size() * number) as u64).unwrap();
        let words: Vec<_> = (0..MAX_WORDS).map(|number| hold(number).unwrap()).collect();
        assert!(hold(MAX_WORDS).is_none());
        aside(|| drop(words));
        // Locks count as long as they are in the list.
        assert_eq!(held_words(), MAX_WORDS);
        assert!(hold(MAX_WORDS).is_some());
        assert_eq!(held_words(), 0);
    });
}
