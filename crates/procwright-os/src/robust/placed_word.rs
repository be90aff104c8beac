//! A word at a place of another's file, held by the thread that makes it, released by
//! whichever.
//!
//! The thread that releases the word may be another than the one that has the lock,
//! and only that one can take it out of its list. So:
//!
//! 1. The word says at once that it was given back.
//! 2. Memory of our own takes the place of the page of the file: the lock goes on
//!    without the file.
//! 3. Both pages stay until the thread that has the lock calls [`sweep`] and unlocks
//!    it, or has ended.
//!
//! The C library goes by what stands in a lock, and others can write to the file. So
//! what it finds there when it unlocks is what it had left, from a copy.

use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use super::robust_lock::{Content, RobustLock};
use super::thread_word::{held_words, holds_one_less, holds_one_more, marks_words};
use super::{MAX_WORDS, OWNER_DIED, WAITERS, page_size, wake};
use crate::fork::{ForkId, PerProcess};
use crate::sync::{Mutex, MutexGuard};
use crate::{shared_memory, unsupported};

/// A word that the thread which made this holds, until this is dropped, by any thread,
/// or the thread ends. From then on the word says that it has no holder.
#[doc(alias = "PTHREAD_MUTEX_ROBUST")]
#[derive(Debug)]
pub struct PlacedWord {
    lock: RobustLock,
    thread: LockingThread,
    process: ForkId,
    /// Content of the lock, without the bit that says that a thread sleeps on it: to
    /// unlock needs no call.
    content: Content,
    value: u32,
}

// SAFETY: what another thread does with it is to read the word, which is an atomic,
// and to drop it, which leaves the lock to the thread that has it.
unsafe impl Send for PlacedWord {}
// SAFETY: shared, it is read, which is a load.
unsafe impl Sync for PlacedWord {}

impl PlacedWord {
    /// Holds a word somewhere in the page that begins at `at`; none if this thread
    /// has [`MAX_WORDS`]. The caller has made sure that the file cannot be cut short.
    ///
    /// # Errors
    /// When there is no memory left; `Unsupported` where the kernel does not mark
    /// the words of a thread that ends, or the C library's locks are not what we
    /// know.
    pub fn hold(file: BorrowedFd<'_>, at: u64) -> io::Result<Option<PlacedWord>> {
        sweep();
        if held_words() >= MAX_WORDS {
            return Ok(None);
        }
        // An error of the trial means that it is not known.
        if !marks_words().unwrap_or(false) {
            return Err(unsupported("a robust list that the kernel walks"));
        }
        shared_memory::allocate(file, at, page_size() as u64)?;
        let mut lock = RobustLock::map(file, at)?;
        let locked = lock.lock();
        if locked.is_err() {
            // SAFETY: no thread has locked it.
            unsafe { lock.unmap() };
        }
        locked?;
        holds_one_more();
        let found = lock.find_word();
        let mut word = PlacedWord {
            content: lock.content(),
            lock,
            thread: LockingThread::this(),
            process: ForkId::current(),
            value: 0,
        };
        found?;
        // The kernel wakes no sleeper without the bit.
        word.value = word.lock.word().fetch_or(WAITERS, Ordering::SeqCst) | WAITERS;
        Ok(Some(word))
    }

    /// The place of the word, from the beginning of its page.
    pub fn place(&self) -> u32 {
        4 * self.lock.index() as u32
    }

    /// The value of the word as long as it is held.
    pub fn value(&self) -> u32 {
        self.value
    }

    /// True if the thread that held it has ended.
    #[inline]
    pub fn has_died(&self) -> bool {
        // Relaxed: the bit is a fact by itself, never taken back.
        self.lock.word().load(Ordering::Relaxed) & OWNER_DIED != 0
    }
}

impl Drop for PlacedWord {
    fn drop(&mut self) {
        // A fork: the word is not there, and not ours.
        if !self.process.is_current() {
            return;
        }
        if self.value != 0 {
            let word = self.lock.word();
            word.store(0, Ordering::SeqCst);
            wake(word);
        }
        if self.lock.detach_from_file(self.content).is_err() {
            // The page stays as it is, and is not used again.
            return;
        }
        orphaned().push(OrphanedLock {
            lock: self.lock.twin(),
            thread: self.thread,
        });
        sweep();
    }
}

/// A lock that is not needed any more, but may be in the list of a thread yet.
#[derive(Debug)]
struct OrphanedLock {
    lock: RobustLock,
    thread: LockingThread,
}

// SAFETY: who has it does nothing but what `sweep` does.
unsafe impl Send for OrphanedLock {}

static ORPHANED: PerProcess<Mutex<Vec<OrphanedLock>>> = PerProcess::new();

fn orphaned() -> MutexGuard<'static, Vec<OrphanedLock>> {
    ORPHANED.get().lock()
}

/// Unlocks what this thread has locked, and unmaps that and what no thread has locked.
fn sweep() {
    let this = LockingThread::this();
    orphaned().retain(|OrphanedLock { lock, thread }| {
        if *thread == this {
            // SAFETY: this thread has locked it, and what is in it is the copy of
            // what the C library had left.
            unsafe { lock.unlock() };
            holds_one_less();
        } else if !thread.has_ended(this) {
            return true;
        }
        // SAFETY: no thread that runs has it locked, and it is dropped here.
        unsafe { lock.unmap() };
        false
    });
}

/// A thread of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LockingThread {
    /// Serial number: no other thread of this process has or had it.
    serial: u64,
    /// The kernel's number, which another thread may have later.
    number: i32,
}

impl LockingThread {
    fn this() -> LockingThread {
        static LAST: AtomicU64 = AtomicU64::new(0);
        thread_local! {
            static SERIAL: Cell<u64> = const { Cell::new(0) };
        }
        // Relaxed: only the count matters.
        if SERIAL.get() == 0 {
            SERIAL.set(1 + LAST.fetch_add(1, Ordering::Relaxed));
        }
        LockingThread {
            serial: SERIAL.get(),
            number: rustix::thread::gettid().as_raw_nonzero().get(),
        }
    }

    /// True if the thread has ended, seen from another one, `this`. If a third has its
    /// number by now, that is not known, and the answer is no.
    fn has_ended(self, this: LockingThread) -> bool {
        if self.number == this.number {
            return true;
        }
        let process = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: no signal is sent, and no pointer.
        let asked = unsafe { libc::syscall(libc::SYS_tgkill, process, self.number, 0) };
        asked != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }
}

#[cfg(test)]
#[path = "placed_word_tests.rs"]
mod tests;
