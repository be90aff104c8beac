//! A word at a place of somebody's file, held by the thread that asks, let go by
//! whichever.
//!
//! Whoever lets go may be another thread than the one that has the lock, and only
//! that one can take it out of its list. So the word says at once that it was
//! given back, and the lock goes on without it: memory of our own takes the place
//! of the page of the file, and both pages stay until the thread that has the lock
//! comes by here and unlocks it, or has ended.
//!
//! The C library goes by what stands in a lock, and others can write to the file.
//! So what it finds there when it unlocks is what it had left, from a copy.

use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::mutex::{Content, Lock, held, holds_one_less, holds_one_more, marks_words};
use super::{AWAITED, DIED, MOST, sheet, wake};
use crate::sys::fork::{Ourselves, PerProcess};
use crate::sys::{shared, unsupported};

/// A word that the thread which made this holds, until this is dropped, by
/// whomever, or that thread ends.
#[derive(Debug)]
pub(crate) struct PlacedWord {
    lock: Lock,
    thread: Thread,
    process: Ourselves,
    /// Without the bit that says that somebody sleeps on it: to unlock needs no
    /// call.
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
    /// has [`MOST`]. Nobody can cut the file short.
    ///
    /// # Errors
    /// When there is no memory left; `Unsupported` where the kernel does not mark
    /// the words of a thread that ends, or the C library's locks are not what we
    /// know.
    pub(crate) fn hold(file: BorrowedFd<'_>, at: u64) -> io::Result<Option<PlacedWord>> {
        sweep();
        if held() >= MOST {
            return Ok(None);
        }
        if !marks_words()? {
            return Err(unsupported("a robust list that the kernel walks"));
        }
        shared::provide(file, at, sheet() as u64)?;
        let mut lock = Lock::map(file, at)?;
        let locked = lock.lock();
        if locked.is_err() {
            // SAFETY: nobody has it.
            unsafe { lock.unmap() };
        }
        locked?;
        holds_one_more();
        let found = lock.find_word();
        let mut word = PlacedWord {
            content: lock.content(),
            lock,
            thread: Thread::this(),
            process: Ourselves::now(),
            value: 0,
        };
        found?;
        // Without it the kernel wakes nobody.
        word.value = word.lock.word().fetch_or(AWAITED, Ordering::SeqCst) | AWAITED;
        Ok(Some(word))
    }

    /// Where it is, from the beginning of its page.
    pub(crate) fn place(&self) -> u32 {
        4 * self.lock.index() as u32
    }

    /// What it says as long as it is held.
    pub(crate) fn value(&self) -> u32 {
        self.value
    }

    /// Whether the thread that held it has ended.
    #[inline]
    pub(crate) fn has_died(&self) -> bool {
        self.lock.word().load(Ordering::Relaxed) & DIED != 0
    }
}

impl Drop for PlacedWord {
    fn drop(&mut self) {
        // In a fork it is not there, and not ours.
        if !self.process.are_we() {
            return;
        }
        if self.value != 0 {
            let word = self.lock.word();
            word.store(0, Ordering::SeqCst);
            wake(word);
        }
        if self.lock.part_from_file(self.content).is_err() {
            // It stays as it is. Nobody will use it.
            return;
        }
        parted().push(Parted {
            lock: self.lock.twin(),
            thread: self.thread,
        });
        sweep();
    }
}

/// A lock that nobody needs any more, but that may be in the list of a thread yet.
#[derive(Debug)]
struct Parted {
    lock: Lock,
    thread: Thread,
}

// SAFETY: who has it does nothing but what `sweep` does.
unsafe impl Send for Parted {}

static PARTED: PerProcess<Mutex<Vec<Parted>>> = PerProcess::new();

fn parted() -> MutexGuard<'static, Vec<Parted>> {
    PARTED.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes away what can be: what this thread has locked, and what nobody has.
fn sweep() {
    let this = Thread::this();
    parted().retain(|Parted { lock, thread }| {
        if *thread == this {
            // SAFETY: this thread has locked it, and what is in it is the copy of
            // what the C library had left.
            unsafe { lock.unlock() };
            holds_one_less();
        } else if !thread.has_ended(this) {
            return true;
        }
        // SAFETY: nobody has it locked who runs, and it is dropped here.
        unsafe { lock.unmap() };
        false
    });
}

/// A thread of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    /// No other of this process has or had it.
    serial: u64,
    /// The kernel's number, which another may have later.
    number: i32,
}

impl Thread {
    fn this() -> Thread {
        static LAST: AtomicU64 = AtomicU64::new(0);
        thread_local! {
            static SERIAL: Cell<u64> = const { Cell::new(0) };
        }
        if SERIAL.get() == 0 {
            SERIAL.set(1 + LAST.fetch_add(1, Ordering::Relaxed));
        }
        Thread {
            serial: SERIAL.get(),
            number: rustix::thread::gettid().as_raw_nonzero().get(),
        }
    }

    /// Whether nothing runs there any more, seen from `this` other one. If another
    /// has its number, that is not known.
    fn has_ended(self, this: Thread) -> bool {
        if self.number == this.number {
            return true;
        }
        let process = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: no signal is sent, and no pointer.
        let asked = unsafe { libc::syscall(libc::SYS_tgkill, process, self.number, 0) };
        asked != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }
}
