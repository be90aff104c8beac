//! The list of words that the kernel walks when the thread ends whose list it is.
//!
//! It may end after any store: the process is killed while another thread of it is
//! in here. So the kernel must find every word that has the thread's number, by the
//! list or as the pending one, after each of them. All stores that it could see go
//! through [`set`] and [`swap`], where the test stops and walks as the kernel does.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use libc::c_long;

use super::{AWAITED, is_free};

/// An entry, as the kernel wants it (`struct robust_list`), and the way back, which
/// the kernel does not look at.
#[repr(C)]
pub(super) struct Link {
    next: AtomicPtr<Link>,
    previous: AtomicPtr<Link>,
}

/// The head of a thread's list (`struct robust_list_head`).
#[repr(C)]
pub(super) struct Head {
    /// Points to itself while the list is empty: the kernel's end mark.
    pub(super) first: AtomicPtr<Link>,
    /// From an entry to its word, in bytes.
    pub(super) offset: c_long,
    /// The entry that is being put in or taken out, which the kernel looks at
    /// whether it is in the list or not.
    pending: AtomicPtr<Link>,
}

/// The head of a list of ours, and the way back.
#[repr(C)]
pub(super) struct Ends {
    head: Head,
    last: AtomicPtr<Link>,
}

/// A list. Whoever changes it sees to it that nobody else does.
#[derive(Clone, Copy, Debug)]
pub(super) struct List(NonNull<Ends>);

// SAFETY: everything in it is an atomic in memory that is mapped for ever.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

/// A word and the entry that leads to it.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    link: NonNull<Link>,
    pub(super) word: &'a AtomicU32,
}

// SAFETY: as for the list.
unsafe impl Send for Entry<'_> {}

impl Entry<'_> {
    /// # Safety
    /// Both are mapped and aligned for as long as the list is, with the distance
    /// that the list has from entry to word, and are not used in any other way.
    /// Zero bytes are a valid entry.
    pub(super) unsafe fn new(link: NonNull<Link>, word: NonNull<AtomicU32>) -> Self {
        Entry {
            link,
            // SAFETY: the caller's word for it.
            word: unsafe { word.as_ref() },
        }
    }
}

/// Where an entry is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// Ours: in memory that nobody can take away.
    First,
    /// In memory that others can make holes into. If the kernel cannot read such
    /// a word it goes no further, and so all of ours must have come before.
    Last,
}

impl List {
    /// An empty list.
    ///
    /// # Safety
    /// The memory is of that size, aligned, mapped for ever, and nobody else uses
    /// it.
    pub(super) unsafe fn begin(at: NonNull<Ends>, offset: c_long) -> List {
        let end = at.as_ptr().cast();
        // SAFETY: the caller's word for it.
        unsafe {
            at.write(Ends {
                head: Head {
                    first: AtomicPtr::new(end),
                    offset,
                    pending: AtomicPtr::new(ptr::null_mut()),
                },
                last: AtomicPtr::new(end),
            });
        }
        List(at)
    }

    /// What the kernel is told.
    pub(super) fn address(self) -> *mut Head {
        self.0.as_ptr().cast()
    }

    /// Holds a word that nobody has.
    pub(super) fn hold(self, entry: Entry<'_>, holder: u32) {
        self.put_in(Where::First, entry, 0, holder | AWAITED);
    }

    /// Holds a word that others can write to, unless somebody holds it.
    pub(super) fn claim(self, entry: Entry<'_>, holder: u32) -> bool {
        let now = entry.word.load(Ordering::SeqCst);
        // Not tried in vain: in another pid namespace a thread may have the number
        // that ours has here, and if we died with that one's word as the pending
        // one, it would be marked.
        is_free(now) && self.put_in(Where::Last, entry, now, holder | AWAITED)
    }

    /// Gives a word of ours back, and says so in it. False if somebody has written
    /// to it behind our back; then it stays what it is.
    pub(super) fn give(
        self,
        entry: Entry<'_>,
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
        let given = swap(entry.word, holder | AWAITED, value);
        // Before the entry is off the kernel's desk: it wakes a sleeper of a word
        // that is pending and that nobody holds, if we are killed before this.
        tell();
        set(&head.pending, ptr::null_mut());
        given
    }

    fn put_in(self, at: Where, entry: Entry<'_>, from: u32, to: u32) -> bool {
        let head = self.head();
        let link = entry.link.as_ptr();
        set(&head.pending, link);
        let taken = swap(entry.word, from, to);
        if taken {
            let (previous, next) = match at {
                Where::First => (self.end(), head.first.load(R)),
                Where::Last => (self.ends().last.load(R), self.end()),
            };
            // SAFETY: as in `next_of`.
            let link = unsafe { &*link };
            set(&link.next, next);
            set(&link.previous, previous);
            // From here on the kernel comes by.
            set(self.next_of(previous), entry.link.as_ptr());
            set(self.previous_of(next), entry.link.as_ptr());
        }
        set(&head.pending, ptr::null_mut());
        taken
    }

    fn head<'a>(self) -> &'a Head {
        &self.ends().head
    }

    fn ends<'a>(self) -> &'a Ends {
        // SAFETY: whole since `begin`, mapped for ever, and nothing changes but
        // its atomics.
        unsafe { self.0.as_ref() }
    }

    fn end(self) -> *mut Link {
        self.0.as_ptr().cast()
    }

    /// The way on from an entry of the list, or into it from its end.
    fn next_of<'a>(self, link: *mut Link) -> &'a AtomicPtr<Link> {
        match link == self.end() {
            true => &self.head().first,
            // SAFETY: what is in the list is an entry, mapped for as long.
            false => unsafe { &(*link).next },
        }
    }

    fn previous_of<'a>(self, link: *mut Link) -> &'a AtomicPtr<Link> {
        match link == self.end() {
            true => &self.ends().last,
            // SAFETY: as above.
            false => unsafe { &(*link).previous },
        }
    }
}

/// Ours to read: whoever changes the list is alone.
const R: Ordering = Ordering::Relaxed;

/// In this order for the kernel, on whatever processor it walks.
fn set(place: &AtomicPtr<Link>, link: *mut Link) {
    place.store(link, Ordering::SeqCst);
    step();
}

fn swap(word: &AtomicU32, from: u32, to: u32) -> bool {
    let swapped = word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    step();
    swapped.is_ok()
}

/// The process may end here.
fn step() {
    #[cfg(test)]
    tests::step();
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
