//! A word that the calling thread holds, through a lock of the C library's: no thread
//! of ours is needed, and the word ends with that thread.
//!
//! Each thread has one list, and the C library's threads have theirs in use: to put
//! another in its place would break every robust lock of that thread. So the word
//! is that of such a lock, in the list that is there.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::robust_lock::RobustLock;
use super::{Facts, MAX_WORDS, WAITERS, cells, wake};
use super::{pages, set_robust_list};
use crate::fork::{ForkId, OnceBool};
use crate::unsupported;

thread_local! {
    /// Words that this thread holds, and the process: a fork holds none.
    static HELD: Cell<(ForkId, usize)> = const { Cell::new((ForkId::NONE, 0)) };
}

pub(super) fn held_words() -> usize {
    match HELD.get() {
        (process, held) if process.is_current() => held,
        _ => 0,
    }
}

pub(super) fn holds_one_more() {
    HELD.set((ForkId::current(), held_words() + 1));
}

pub(super) fn holds_one_less() {
    HELD.set((ForkId::current(), held_words().saturating_sub(1)));
}

/// A word that the calling thread holds, until this is dropped or the thread ends.
#[doc(alias = "PTHREAD_MUTEX_ROBUST")]
#[doc(alias = "pthread_mutexattr_setrobust")]
#[derive(Debug)]
pub struct ThreadWord {
    lock: RobustLock,
    file: OwnedFd,
    process: ForkId,
    /// Marker: a lock is unlocked by the thread that has it.
    _stays: PhantomData<*const ()>,
}

impl ThreadWord {
    /// Holds a word; none if this thread has [`MAX_WORDS`]. The file is the word's own;
    /// the facts stand beside its first cell.
    ///
    /// # Errors
    /// When there is no memory or descriptor left; `Unsupported` where the kernel
    /// does not mark the words of a thread that ends, or the C library's locks are
    /// not what we know.
    pub fn hold(facts: &Facts) -> io::Result<Option<ThreadWord>> {
        if held_words() >= MAX_WORDS {
            return Ok(None);
        }
        if !marks_words()? {
            return Err(unsupported("a robust list that the kernel walks"));
        }
        let file = pages::sealable()?;
        let lock = RobustLock::map(file.as_fd(), 0)?;
        // The process is none yet, so that dropping the word unlocks nothing.
        let mut word = ThreadWord {
            lock,
            file,
            process: ForkId::NONE,
            _stays: PhantomData,
        };
        pages::seal(&word.file)?;
        for (to, fact) in word.lock.words()[1..].iter().zip(facts) {
            to.store(*fact, Ordering::Relaxed);
        }
        word.lock.lock()?;
        // The word has to be unlocked from here on, which dropping it does.
        word.process = ForkId::current();
        holds_one_more();
        word.lock.find_word()?;
        // The kernel wakes no sleeper without the bit. The C library sees a lock that others
        // wait for.
        word.lock.word().fetch_or(WAITERS, Ordering::SeqCst);
        Ok(Some(word))
    }

    /// The file that the word is in, for the watcher.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The number of the word's cell: those of a file of single words follow the others.
    pub fn cell(&self) -> usize {
        cells() + self.lock.index()
    }
}

impl Drop for ThreadWord {
    fn drop(&mut self) {
        let process = ForkId::current();
        if self.process != ForkId::NONE && self.process != process {
            // A fork: the word is not there, and not ours. The links stay, for what they are
            // mapped for.
            return;
        }
        if self.process == process {
            // SAFETY: it is locked, by this thread: the owner of `self` is the
            // thread that made it; the file is sealed against all others.
            unsafe { self.lock.unlock() };
            // The C library has woken one sleeper, if any; this wakes the others.
            wake(self.lock.word());
            holds_one_less();
        }
        // SAFETY: it is not locked, and no other thread locks it.
        unsafe { self.lock.unmap() };
    }
}

/// True if the kernel marks the words of a thread that ends, which is tried once.
pub(super) fn marks_words() -> io::Result<bool> {
    static MARKS: OnceBool = OnceBool::new();
    MARKS.get_or_try_init(set_robust_list::probe_kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    use crate::robust::list::RobustListHead;
    use crate::robust::{FACTS, MappedCells, OWNER_DIED, TID_MASK};

    #[test]
    fn a_thread_that_ends_has_died_and_one_that_lets_go_has_not() {
        let (send, files) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let kept = ThreadWord::hold(&[7; FACTS]).unwrap().unwrap();
            let given_back = ThreadWord::hold(&[8; FACTS]).unwrap().unwrap();
            for word in [&kept, &given_back] {
                let file = word.file().try_clone_to_owned().unwrap();
                send.send((file, word.cell())).unwrap();
            }
            std::mem::forget(kept);
        })
        .join()
        .unwrap();
        let words: Vec<_> = files
            .iter()
            .map(|(file, cell)| {
                let view = MappedCells::map(file.as_fd()).unwrap();
                let fact = view.facts(cell).unwrap()[0].load(Ordering::Relaxed);
                let word = view.word(cell).unwrap().load(Ordering::Relaxed);
                // A part of the word: musl, which marks the words of a thread that ends
                // itself, leaves less of them than the kernel.
                (fact, word & OWNER_DIED, word & TID_MASK)
            })
            .collect();
        assert_eq!(words, [(7, OWNER_DIED, 0), (8, 0, 0)]);
    }

    #[test]
    fn the_list_of_the_thread_is_as_before() {
        let lists = || {
            let (mut head, mut size) = (ptr::null_mut::<RobustListHead>(), 0_usize);
            // SAFETY: both are ours, and the head is this thread's own.
            unsafe {
                libc::syscall(libc::SYS_get_robust_list, 0, &mut head, &mut size);
                ((*head).first.load(Ordering::Relaxed), (*head).offset)
            }
        };
        // A thread has no list before its first lock with musl.
        drop(ThreadWord::hold(&[1; FACTS]).unwrap());
        let before = lists();
        let held: Vec<_> = (0..100)
            .map(|_| ThreadWord::hold(&[1; FACTS]).unwrap().unwrap())
            .collect();
        assert_ne!(lists(), before);
        drop(held);
        assert_eq!(lists(), before);
    }

    #[test]
    fn so_many_and_no_more() {
        std::thread::spawn(|| {
            let mut held = Vec::new();
            while let Some(word) = ThreadWord::hold(&[1; FACTS]).unwrap() {
                held.push(word);
            }
            assert_eq!(held.len(), MAX_WORDS);
            held.pop();
            assert!(ThreadWord::hold(&[1; FACTS]).unwrap().is_some());
        })
        .join()
        .unwrap();
    }
}
