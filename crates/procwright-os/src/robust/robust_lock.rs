//! A robust lock of the C library's (`PTHREAD_MUTEX_ROBUST`), whose word others can map.
//!
//! The lock lies across the end of a page. What stands before its links, the word
//! among it, is in the file that watchers map; the links are in private memory
//! behind it, so that no watcher learns addresses, and no damage to a file can lead
//! the list astray. Where in the lock the word is differs (glibc at 0, musl at 4),
//! so after locking we look at what the kernel would do: it must find an entry in
//! our second page, and from there the word in our first.

use std::io;
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::list::{RobustLink, RobustListHead};
use super::pending_op::may_get_robust_list;
use super::{CELL, TID_MASK, page_size};
use crate::unsupported;

/// Bytes of a lock before its links: with glibc and with musl, wherever there are 64
/// bits.
const BEFORE_LINKS: usize = 24;

/// The words of a lock before its links.
#[cfg(not(procwright_loom))]
pub(super) type Content = [u32; BEFORE_LINKS / 4];

/// Two pages with a lock across the border between them.
///
/// The owner sees to it that the lock is unlocked and unmapped, and when: while it is
/// locked it is in the list of the thread that has locked it.
#[derive(Debug)]
pub(super) struct RobustLock {
    pages: NonNull<u8>,
    /// Index of the word among the numbers in the first page.
    index: usize,
}

impl RobustLock {
    /// Maps a lock that is free.
    ///
    /// The page of the file has its memory, and stays: the file cannot be cut short.
    pub(super) fn map(file: BorrowedFd<'_>, at: u64) -> io::Result<RobustLock> {
        // SAFETY: fresh mappings: two pages at a place of the kernel's choice,
        // whose first is replaced in one step.
        let pages = unsafe {
            let size = 2 * page_size();
            // The links are a fork's as well, as they were: musl leaves the list of the
            // thread that forks as it is, and writes to its first entry when the fork takes
            // a lock.
            let pages =
                rustix::mm::mmap_anonymous(ptr::null_mut(), size, WRITABLE, MapFlags::PRIVATE)?;
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            let mapped = rustix::mm::mmap(pages, page_size(), WRITABLE, flags, file, at)
                // A fork could write to the word.
                .and_then(|_| rustix::mm::madvise(pages, page_size(), Advice::LinuxDontFork));
            if let Err(error) = mapped {
                let _ = rustix::mm::munmap(pages, size);
                return Err(error.into());
            }
            NonNull::new(pages.cast()).ok_or(io::ErrorKind::OutOfMemory)?
        };
        Ok(RobustLock { pages, index: 0 })
    }

    /// Locks it for the calling thread.
    ///
    /// # Errors
    /// Those of the C library.
    pub(super) fn lock(&self) -> io::Result<()> {
        // SAFETY: it lies within our two pages, aligned; nobody else uses it. It
        // stays there until it is unlocked.
        unsafe {
            initialise(self.place())?;
            pthread_result(libc::pthread_mutex_lock(self.place()))
        }
    }

    /// Finds the word that the kernel would mark if this thread ended now, once
    /// this thread has locked it.
    ///
    /// # Errors
    /// `Unsupported` if it would mark none, or another.
    pub(super) fn find_word(&mut self) -> io::Result<()> {
        let found = self.find_word_as_kernel_does()?;
        self.index = found.ok_or_else(|| unsupported("a robust lock whose word is known"))?;
        Ok(())
    }

    /// # Safety
    /// The calling thread has locked it, and the first page holds what the C library has
    /// written there.
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
        let _ = unsafe { rustix::mm::munmap(self.pages.as_ptr().cast(), 2 * page_size()) };
    }

    /// The numbers of the first page.
    pub(super) fn words(&self) -> &[AtomicU32] {
        // SAFETY: the page is mapped until `unmap`, in the process that may ask; the
        // C library, too, changes nothing in it but by atomics while it is locked.
        unsafe { std::slice::from_raw_parts(self.pages.cast().as_ptr(), page_size() / 4) }
    }

    pub(super) fn word(&self) -> &AtomicU32 {
        &self.words()[self.index]
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// The addresses that the list entry of the lock may have.
    pub(super) fn links(&self) -> RangeInclusive<usize> {
        let second = self.pages.addr().get() + page_size();
        second..=second + page_size() - size_of::<RobustLink>()
    }

    /// The address of the lock.
    fn place(&self) -> *mut libc::pthread_mutex_t {
        // SAFETY: within the pages.
        unsafe { self.pages.add(page_size() - BEFORE_LINKS).cast().as_ptr() }
    }

    /// The index of the word that the kernel would mark if this thread ended now; `None`
    /// unless it is ours.
    fn find_word_as_kernel_does(&self) -> io::Result<Option<usize>> {
        if !may_get_robust_list() {
            return Ok(None);
        }
        let (mut head, mut size) = (ptr::null_mut::<RobustListHead>(), 0_usize);
        // SAFETY: both are ours; 0 is the thread that asks.
        let asked = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &mut head, &mut size) };
        if asked != 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => Ok(None),
                _ => Err(error),
            };
        }
        if size != size_of::<RobustListHead>() {
            return Ok(None);
        }
        // SAFETY: it is null or what this thread has told the kernel to look at,
        // which nobody changes but itself.
        let Some(head) = (unsafe { head.as_ref() }) else {
            return Ok(None);
        };
        // The entry that was put in last is the first.
        let entry = head.first.load(Ordering::Relaxed).addr();
        let start = self.pages.addr().get();
        // An odd address means a lock of another kind (priority inheritance).
        if !self.links().contains(&entry) || entry % 2 != 0 {
            return Ok(None);
        }
        let word = entry.wrapping_add_signed(head.offset as isize);
        let Some(at) = word.checked_sub(start) else {
            return Ok(None);
        };
        if at < CELL || at + 4 > page_size() || at % 4 != 0 {
            return Ok(None);
        }
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let is_ours = self.words()[at / 4].load(Ordering::Relaxed) & TID_MASK
            == thread.cast_unsigned() & TID_MASK;
        Ok(is_ours.then_some(at / 4))
    }
}

/// Parts for a lock that another thread than its holder lets go.
#[cfg(not(procwright_loom))]
impl RobustLock {
    /// The words before the links.
    pub(super) fn content(&self) -> Content {
        let first = (page_size() - BEFORE_LINKS) / 4;
        std::array::from_fn(|i| self.words()[first + i].load(Ordering::Relaxed))
    }

    /// Puts memory of this process's own, with that content before the links, in the
    /// place of the page of the file, whichever thread has locked it.
    ///
    /// # Errors
    /// If it is not known which of the two is there now.
    pub(super) fn detach_from_file(&self, content: Content) -> io::Result<()> {
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        let at = self.pages.as_ptr().cast();
        // The kernel finds no holder between this and the stores: then there is nothing
        // to mark.
        //
        // SAFETY: a page of ours, which stays mapped; what looks at it is the
        // thread that has it locked, and not before it unlocks it.
        unsafe { rustix::mm::mmap_anonymous(at, page_size(), WRITABLE, flags)? };
        let first = (page_size() - BEFORE_LINKS) / 4;
        // Relaxed: the thread that unlocks either is this one, or takes the mutex of
        // the orphaned locks first.
        for (to, number) in self.words()[first..].iter().zip(content) {
            to.store(number, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A second reference, for the list that takes the lock over from `self`.
    pub(super) fn twin(&self) -> RobustLock {
        RobustLock { ..*self }
    }
}

const WRITABLE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// # Safety
/// `lock` points to memory for a lock that is not in use.
pub(super) unsafe fn initialise(lock: *mut libc::pthread_mutex_t) -> io::Result<()> {
    let mut kind = MaybeUninit::uninit();
    // SAFETY: `kind` is initialised by the first call, and ours; the rest is the
    // caller's promise. There is nothing to destroy in either: neither library
    // keeps anything elsewhere.
    unsafe {
        pthread_result(libc::pthread_mutexattr_init(kind.as_mut_ptr()))?;
        pthread_result(libc::pthread_mutexattr_setpshared(
            kind.as_mut_ptr(),
            libc::PTHREAD_PROCESS_SHARED,
        ))?;
        let robust = libc::PTHREAD_MUTEX_ROBUST;
        pthread_result(libc::pthread_mutexattr_setrobust(kind.as_mut_ptr(), robust))?;
        pthread_result(libc::pthread_mutex_init(lock, kind.as_ptr()))
    }
}

/// The result of a call of the C library's about locks.
fn pthread_result(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        // The library has tried `set_robust_list` (glibc) or `get_robust_list` (musl), which does
        // not exist or is denied.
        libc::ENOTSUP | libc::ENOSYS | libc::EPERM | libc::EACCES => {
            Err(unsupported("a robust lock"))
        }
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
