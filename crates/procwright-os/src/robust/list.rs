//! The list of words that the kernel walks when the thread ends whose list it is.
//!
//! The process may be killed after any store, while another thread of it changes the
//! list. So the kernel must find every word that has the thread's number, by the list
//! or as the pending one, after each of them. All stores that it could see go through
//! [`set`] and [`swap`], where the test stops and walks as the kernel does.
//!
//! # Steps of a hold
//!
//! 1. The entry becomes the pending one: the kernel looks at its word.
//! 2. The word gets the thread's number. A kill from here on marks it.
//! 3. The entry's own links are set, then those of its neighbours: it is in the list.
//! 4. No entry is pending any more.
//!
//! # Steps of a release
//!
//! 1. The entry becomes the pending one.
//! 2. Its neighbours are linked to each other: it is out of the list.
//! 3. The word gets its last value. A kill before this marks it as pending.
//! 4. Sleepers are woken. A kill before this makes the kernel wake one, since the
//!    word is pending and has no holder.
//! 5. No entry is pending any more.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use libc::c_long;

use super::{WAITERS, is_free};

/// A list entry as the kernel wants it (`struct robust_list`), and the way back, which
/// the kernel does not read.
#[repr(C)]
pub(super) struct RobustLink {
    next: AtomicPtr<RobustLink>,
    previous: AtomicPtr<RobustLink>,
}

/// The head of a thread's list (`struct robust_list_head`).
#[doc(alias = "robust_list_head")]
#[repr(C)]
pub(super) struct RobustListHead {
    /// First entry. Points to the head while the list is empty: the kernel's end mark.
    pub(super) first: AtomicPtr<RobustLink>,
    /// Distance from an entry to its word, in bytes.
    pub(super) offset: c_long,
    /// Entry that is being put in or taken out, which the kernel looks at whether it
    /// is in the list or not (`list_op_pending`).
    pub(super) pending: AtomicPtr<RobustLink>,
}

/// The head of a list of ours, and its last entry.
#[repr(C)]
pub(super) struct ListEnds {
    head: RobustListHead,
    last: AtomicPtr<RobustLink>,
}

/// A list. Callers see to it that one thread at a time changes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct List(NonNull<ListEnds>);

// SAFETY: everything in it is an atomic in memory that is mapped for ever.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

/// A word and the entry that leads to it.
#[derive(Clone, Copy)]
pub(super) struct ListEntry<'a> {
    link: NonNull<RobustLink>,
    pub(super) word: &'a AtomicU32,
}

// SAFETY: as for the list.
unsafe impl Send for ListEntry<'_> {}

impl ListEntry<'_> {
    /// # Safety
    /// Both are mapped and aligned for as long as the list is, with the distance
    /// that the list has from entry to word, and are not used in any other way.
    /// Zero bytes are a valid entry.
    pub(super) unsafe fn new(link: NonNull<RobustLink>, word: NonNull<AtomicU32>) -> Self {
        ListEntry {
            link,
            // SAFETY: the caller's word for it.
            word: unsafe { word.as_ref() },
        }
    }
}

/// The end of the list where an entry is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InsertAt {
    /// The front, for words of ours: their memory cannot be taken away.
    First,
    /// The back, for words in memory that others can punch holes into. A word that
    /// the kernel cannot read ends its walk, so all of ours must have come before.
    Last,
}

impl List {
    /// Makes an empty list.
    ///
    /// # Safety
    /// The memory is of that size, aligned, mapped for ever, and used by nothing else.
    pub(super) unsafe fn begin(at: NonNull<ListEnds>, offset: c_long) -> List {
        let end = at.as_ptr().cast();
        // SAFETY: the caller's word for it.
        unsafe {
            at.write(ListEnds {
                head: RobustListHead {
                    first: AtomicPtr::new(end),
                    offset,
                    pending: AtomicPtr::new(ptr::null_mut()),
                },
                last: AtomicPtr::new(end),
            });
        }
        List(at)
    }

    /// The address to pass to `set_robust_list(2)`.
    pub(super) fn address(self) -> *mut RobustListHead {
        self.0.as_ptr().cast()
    }

    /// Holds a word that is free.
    pub(super) fn hold(self, entry: ListEntry<'_>, holder: u32) {
        self.insert(InsertAt::First, entry, 0, holder | WAITERS);
    }

    /// Holds a word that others can write to, unless it has a holder.
    pub(super) fn claim(self, entry: ListEntry<'_>, holder: u32) -> bool {
        // SeqCst, as all that the kernel's walk is compared with.
        let now = entry.word.load(Ordering::SeqCst);
        // A word that is not free is not tried: in another pid namespace a thread may have
        // the number that ours has here, and if we died with that one's word as the pending
        // one, it would be marked.
        is_free(now) && self.insert(InsertAt::Last, entry, now, holder | WAITERS)
    }

    /// Gives a word of ours back, with its last value. False if another process has
    /// written to it behind our back; then it stays what it is.
    pub(super) fn give(
        self,
        entry: ListEntry<'_>,
        holder: u32,
        value: u32,
        tell: impl FnOnce(),
    ) -> bool {
        let head = self.head();
        let link = entry.link.as_ptr();
        set(&head.pending, link);
        // SAFETY: as in `next_of`.
        let (next, previous) = unsafe { ((*link).next.load(R), (*link).previous.load(R)) };
        set(self.next_of(previous), next);
        set(self.previous_of(next), previous);
        let given = swap(entry.word, holder | WAITERS, value);
        // Step 4, before 5: until then the kernel wakes a sleeper if we are killed.
        tell();
        set(&head.pending, ptr::null_mut());
        given
    }

    fn insert(self, at: InsertAt, entry: ListEntry<'_>, from: u32, to: u32) -> bool {
        let head = self.head();
        let link = entry.link.as_ptr();
        set(&head.pending, link);
        let taken = swap(entry.word, from, to);
        if taken {
            let (previous, next) = match at {
                InsertAt::First => (self.end(), head.first.load(R)),
                InsertAt::Last => (self.ends().last.load(R), self.end()),
            };
            // SAFETY: as in `next_of`.
            let link = unsafe { &*link };
            set(&link.next, next);
            set(&link.previous, previous);
            // The kernel finds the entry in the list from here on.
            set(self.next_of(previous), entry.link.as_ptr());
            set(self.previous_of(next), entry.link.as_ptr());
        }
        set(&head.pending, ptr::null_mut());
        taken
    }

    fn head<'a>(self) -> &'a RobustListHead {
        &self.ends().head
    }

    fn ends<'a>(self) -> &'a ListEnds {
        // SAFETY: whole since `begin`, mapped for ever, and nothing changes but
        // its atomics.
        unsafe { self.0.as_ref() }
    }

    fn end(self) -> *mut RobustLink {
        self.0.as_ptr().cast()
    }

    /// The link to the entry after `link`, or to the first if `link` is the end.
    fn next_of<'a>(self, link: *mut RobustLink) -> &'a AtomicPtr<RobustLink> {
        match link == self.end() {
            true => &self.head().first,
            // SAFETY: what is in the list is an entry, mapped for as long.
            false => unsafe { &(*link).next },
        }
    }

    /// The link to the entry before `link`, or to the last if `link` is the end.
    fn previous_of<'a>(self, link: *mut RobustLink) -> &'a AtomicPtr<RobustLink> {
        match link == self.end() {
            true => &self.ends().last,
            // SAFETY: as above.
            false => unsafe { &(*link).previous },
        }
    }
}

/// Relaxed, for reads of the links: the caller alone changes the list.
const R: Ordering = Ordering::Relaxed;

/// Stores a link. SeqCst: the kernel, on whatever processor it walks, sees the stores
/// in this order.
fn set(place: &AtomicPtr<RobustLink>, link: *mut RobustLink) {
    place.store(link, Ordering::SeqCst);
    step();
}

/// Exchanges a word. SeqCst, for the same order as the links.
fn swap(word: &AtomicU32, from: u32, to: u32) -> bool {
    let swapped = word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    step();
    swapped.is_ok()
}

/// A point where the process may be killed: the test walks the list here.
fn step() {
    #[cfg(test)]
    tests::step();
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
