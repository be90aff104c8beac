//! A word that is held by a thread of the caller's, through a lock of the C
//! library's: no thread of ours is needed, and the word ends with that thread.
//!
//! Each thread has one list, and the C library's threads have theirs in use: who
//! puts another in its place breaks every robust lock of that thread. So the word
//! is that of such a lock, in the list that is there.
//!
//! The lock lies across the end of a page. What stands before its links, the word
//! among it, is in the file that watchers map; the links are in private memory
//! behind it, so that nobody learns addresses, and no damage to a file can lead
//! the list astray. Where in the lock the word is differs (glibc at 0, musl at 4),
//! so after locking we look at what the kernel would do: it must find an entry in
//! our second page, and from there the word in our first.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::list::{Head, Link};
use super::pending::may_ask;
use super::{AWAITED, CELL, Facts, MOST, cells, sheet, wake};
use super::{keeper, memory};
use crate::sys::fork::Ourselves;
use crate::sys::unsupported;

/// What stands before the links of a lock: with glibc and with musl, wherever
/// there are 64 bits.
const BEFORE_LINKS: usize = 24;

/// What stands there.
#[cfg(not(procwright_loom))]
pub(super) type Content = [u32; BEFORE_LINKS / 4];

/// The part of a word that says whose it is.
const HOLDER: u32 = 0x3fff_ffff;

/// Two pages with a lock across the border between them.
///
/// Whoever has it sees to it that it is unlocked and unmapped, and when: while it
/// is locked it is in the list of the thread that has locked it.
#[derive(Debug)]
pub(super) struct Lock {
    pages: NonNull<u8>,
    /// Which of the numbers in the first page is the word.
    index: usize,
}

impl Lock {
    /// Nobody has locked it yet.
    ///
    /// The page of the file has its memory, and stays: nobody can cut the file short.
    pub(super) fn map(file: BorrowedFd<'_>, at: u64) -> io::Result<Lock> {
        // SAFETY: fresh mappings: two pages at a place of the kernel's choice,
        // whose first is replaced in one step.
        let pages = unsafe {
            let size = 2 * sheet();
            // The links are a fork's as well, as they were: musl leaves the list
            // of the thread that forks as it is, and writes to its first entry
            // when the fork takes a lock.
            let pages =
                rustix::mm::mmap_anonymous(ptr::null_mut(), size, WRITABLE, MapFlags::PRIVATE)?;
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            let mapped = rustix::mm::mmap(pages, sheet(), WRITABLE, flags, file, at)
                // A fork could write to the word.
                .and_then(|_| rustix::mm::madvise(pages, sheet(), Advice::LinuxDontFork));
            if let Err(error) = mapped {
                let _ = rustix::mm::munmap(pages, size);
                return Err(error.into());
            }
            NonNull::new(pages.cast()).ok_or(io::ErrorKind::OutOfMemory)?
        };
        Ok(Lock { pages, index: 0 })
    }

    /// The calling thread has it from now on.
    ///
    /// # Errors
    /// If it has not.
    pub(super) fn lock(&self) -> io::Result<()> {
        // SAFETY: it lies within our two pages, aligned; nobody else uses it. It
        // stays there until it is unlocked.
        unsafe {
            initialise(self.place())?;
            done(libc::pthread_mutex_lock(self.place()))
        }
    }

    /// Finds the word that the kernel would mark if this thread ended now, once
    /// this thread has locked it.
    ///
    /// # Errors
    /// `Unsupported` if it would mark none, or another.
    pub(super) fn find_word(&mut self) -> io::Result<()> {
        let found = self.as_the_kernel_finds_it()?;
        self.index = found.ok_or_else(|| unsupported("a robust lock whose word is known"))?;
        Ok(())
    }

    /// # Safety
    /// The calling thread has locked it, and what is in the first page is what the
    /// C library has written there.
    pub(super) unsafe fn unlock(&self) {
        // SAFETY: the caller's word for it.
        unsafe { libc::pthread_mutex_unlock(self.place()) };
    }

    /// # Safety
    /// It is in no list of a thread that runs, and nothing refers to it.
    pub(super) unsafe fn unmap(&self) {
        // The kernel looks at an entry after it was taken out only while the
        // thread is inside the unlocking: that is over.
        //
        // SAFETY: both pages are ours; the rest is the caller's word.
        let _ = unsafe { rustix::mm::munmap(self.pages.as_ptr().cast(), 2 * sheet()) };
    }

    /// The numbers of the first page.
    pub(super) fn words(&self) -> &[AtomicU32] {
        // SAFETY: the page is mapped until `unmap`, in the process that may ask; the
        // C library, too, changes nothing in it but by atomics while it is locked.
        unsafe { std::slice::from_raw_parts(self.pages.cast().as_ptr(), sheet() / 4) }
    }

    pub(super) fn word(&self) -> &AtomicU32 {
        &self.words()[self.index]
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    fn place(&self) -> *mut libc::pthread_mutex_t {
        // SAFETY: within the pages.
        unsafe { self.pages.add(sheet() - BEFORE_LINKS).cast().as_ptr() }
    }

    /// The place of the word that the kernel would mark if this thread ended now:
    /// none unless it is ours.
    fn as_the_kernel_finds_it(&self) -> io::Result<Option<usize>> {
        if !may_ask() {
            return Ok(None);
        }
        let (mut head, mut size) = (ptr::null_mut::<Head>(), 0_usize);
        // SAFETY: both are ours; 0 is the thread that asks.
        let asked = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &mut head, &mut size) };
        if asked != 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => Ok(None),
                _ => Err(error),
            };
        }
        if size != size_of::<Head>() {
            return Ok(None);
        }
        // SAFETY: it is null or what this thread has told the kernel to look at,
        // which nobody changes but itself.
        let Some(head) = (unsafe { head.as_ref() }) else {
            return Ok(None);
        };
        // The last that was put in is the first.
        let entry = head.first.load(Ordering::Relaxed).addr();
        let start = self.pages.addr().get();
        let links = start + sheet()..=start + 2 * sheet() - size_of::<Link>();
        // An odd one is that of a lock of another kind.
        if !links.contains(&entry) || entry % 2 != 0 {
            return Ok(None);
        }
        let word = entry.wrapping_add_signed(head.offset as isize);
        let Some(at) = word.checked_sub(start) else {
            return Ok(None);
        };
        if at < CELL || at + 4 > sheet() || at % 4 != 0 {
            return Ok(None);
        }
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let is_ours = self.words()[at / 4].load(Ordering::Relaxed) & HOLDER
            == thread.cast_unsigned() & HOLDER;
        Ok(is_ours.then_some(at / 4))
    }
}

/// For a lock that somebody else than its thread lets go.
#[cfg(not(procwright_loom))]
impl Lock {
    /// What stands before the links.
    pub(super) fn content(&self) -> Content {
        let first = (sheet() - BEFORE_LINKS) / 4;
        std::array::from_fn(|i| self.words()[first + i].load(Ordering::Relaxed))
    }

    /// Puts memory of this process's own in the place of the page of the file, with
    /// that before the links, whoever has locked it.
    ///
    /// # Errors
    /// If it cannot be told what is there now.
    pub(super) fn part_from_file(&self, content: Content) -> io::Result<()> {
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        let at = self.pages.as_ptr().cast();
        // Between this and the stores the kernel finds no holder: then there is
        // nothing to mark.
        //
        // SAFETY: a page of ours, which stays mapped; what looks at it is the
        // thread that has it locked, and not before it unlocks it.
        unsafe { rustix::mm::mmap_anonymous(at, sheet(), WRITABLE, flags)? };
        let first = (sheet() - BEFORE_LINKS) / 4;
        for (to, number) in self.words()[first..].iter().zip(content) {
            to.store(number, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The same, for whoever takes it over from who has `self`.
    pub(super) fn twin(&self) -> Lock {
        Lock { ..*self }
    }
}

const WRITABLE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

thread_local! {
    /// How many this thread holds, and in which process: a fork has none.
    static HELD: Cell<(Ourselves, usize)> = const { Cell::new((Ourselves::NOBODY, 0)) };
}

pub(super) fn held() -> usize {
    match HELD.get() {
        (process, held) if process.are_we() => held,
        _ => 0,
    }
}

pub(super) fn holds_one_more() {
    HELD.set((Ourselves::now(), held() + 1));
}

pub(super) fn holds_one_less() {
    HELD.set((Ourselves::now(), held().saturating_sub(1)));
}

/// A word that the calling thread holds, until this is dropped or it ends.
#[derive(Debug)]
pub(crate) struct ThreadWord {
    lock: Lock,
    file: OwnedFd,
    process: Ourselves,
    /// A lock is unlocked by the thread that has it.
    _stays: PhantomData<*const ()>,
}

impl ThreadWord {
    /// Holds a word; none if this thread has [`MOST`].
    ///
    /// # Errors
    /// When there is no memory or descriptor left; `Unsupported` where the kernel
    /// does not mark the words of a thread that ends, or the C library's locks are
    /// not what we know.
    pub(crate) fn hold(facts: &Facts) -> io::Result<Option<ThreadWord>> {
        if held() >= MOST {
            return Ok(None);
        }
        if !marks_words()? {
            return Err(unsupported("a robust list that the kernel walks"));
        }
        let file = memory::sealable()?;
        let lock = Lock::map(file.as_fd(), 0)?;
        // Its process is none yet, so that dropping it unlocks nothing.
        let mut word = ThreadWord {
            lock,
            file,
            process: Ourselves::NOBODY,
            _stays: PhantomData,
        };
        memory::seal(&word.file)?;
        for (to, fact) in word.lock.words()[1..].iter().zip(facts) {
            to.store(*fact, Ordering::Relaxed);
        }
        word.lock.lock()?;
        // From here on it has to be unlocked, which is what dropping it does.
        word.process = Ourselves::now();
        holds_one_more();
        word.lock.find_word()?;
        // Without it the kernel wakes nobody. The C library sees a lock that
        // others wait for.
        word.lock.word().fetch_or(AWAITED, Ordering::SeqCst);
        Ok(Some(word))
    }

    /// The file that it is in, for whoever is to watch.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its place in there.
    pub(crate) fn cell(&self) -> usize {
        cells() + self.lock.index()
    }
}

impl Drop for ThreadWord {
    fn drop(&mut self) {
        let process = Ourselves::now();
        if self.process != Ourselves::NOBODY && self.process != process {
            // A fork: the word is not there, and not ours. The links stay, for
            // what they are mapped for.
            return;
        }
        if self.process == process {
            // SAFETY: it is locked, by this thread: whoever has `self` is the
            // thread that made it; the file is sealed against all others.
            unsafe { self.lock.unlock() };
            // The C library has woken one, if any.
            wake(self.lock.word());
            holds_one_less();
        }
        // SAFETY: it is not locked, and nobody else locks it.
        unsafe { self.lock.unmap() };
    }
}

/// # Safety
/// It points to memory for a lock that nobody has.
unsafe fn initialise(lock: *mut libc::pthread_mutex_t) -> io::Result<()> {
    let mut kind = MaybeUninit::uninit();
    // SAFETY: `kind` is initialised by the first call, and ours; the rest is the
    // caller's promise. There is nothing to destroy in either: neither library
    // keeps anything elsewhere.
    unsafe {
        done(libc::pthread_mutexattr_init(kind.as_mut_ptr()))?;
        done(libc::pthread_mutexattr_setpshared(
            kind.as_mut_ptr(),
            libc::PTHREAD_PROCESS_SHARED,
        ))?;
        let robust = libc::PTHREAD_MUTEX_ROBUST;
        done(libc::pthread_mutexattr_setrobust(kind.as_mut_ptr(), robust))?;
        done(libc::pthread_mutex_init(lock, kind.as_ptr()))
    }
}

/// The result of a call of the C library's about locks.
fn done(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        // It has tried `set_robust_list` (glibc) or `get_robust_list` (musl), which
        // does not exist or is denied.
        libc::ENOTSUP | libc::ENOSYS | libc::EPERM | libc::EACCES => {
            Err(unsupported("a robust lock"))
        }
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Whether the kernel marks the words of a thread that ends, which a thread of
/// ours tries once. It has a list of its own: one of the C library's would not
/// tell, since musl marks the words of a thread that ends itself.
pub(super) fn marks_words() -> io::Result<bool> {
    // No lock: a fork would inherit it held. Two who try at once do no harm.
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    const YES: u8 = 1;
    const NO: u8 = 2;
    match KNOWN.load(Ordering::Relaxed) {
        0 => {}
        known => return Ok(known == YES),
    }
    let marks = keeper::tries_out()?;
    KNOWN.store(if marks { YES } else { NO }, Ordering::Relaxed);
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::robust::{DIED, FACTS, View};

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
                let view = View::map(file.as_fd()).unwrap();
                let fact = view.facts(cell).unwrap()[0].load(Ordering::Relaxed);
                let word = view.word(cell).unwrap().load(Ordering::Relaxed);
                // Not all of it: musl, which marks the words of a thread that ends
                // itself, leaves less of them than the kernel.
                (fact, word & DIED, word & HOLDER)
            })
            .collect();
        assert_eq!(words, [(7, DIED, 0), (8, 0, 0)]);
    }

    #[test]
    fn the_list_of_the_thread_is_as_before() {
        let lists = || {
            let (mut head, mut size) = (ptr::null_mut::<Head>(), 0_usize);
            // SAFETY: both are ours, and the head is this thread's own.
            unsafe {
                libc::syscall(libc::SYS_get_robust_list, 0, &mut head, &mut size);
                ((*head).first.load(Ordering::Relaxed), (*head).offset)
            }
        };
        // With musl a thread has no list before its first.
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
            assert_eq!(held.len(), MOST);
            held.pop();
            assert!(ThreadWord::hold(&[1; FACTS]).unwrap().is_some());
        })
        .join()
        .unwrap();
    }
}
