//! The holder's side: cells of words, and the robust list that leads the kernel to
//! them.

use crate::sync::{Mutex, MutexGuard};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::c_long;

use super::list::{List, ListEntry};
use super::mapped_rights::{MappedRights, right_offset};
use super::pages::{PageSlot, create_rights_file, map, sealable};
use super::set_robust_list::{marks_words, start_holder};
use super::{CELL, FACTS, Facts, MAX_RIGHTS, MAX_WORDS, WAITERS, cells, page_size, wake};

/// A thread that holds the words of this process for as long as it runs this program,
/// and the rights that the process has claimed. Started once a process.
///
/// The memory has three parts: a page with the list's head, the entries, and the
/// words, which are in files, a page each. Entries and words have the same distance
/// from each other, so that one offset leads from any entry to its word. None of
/// it is ever unmapped while the kernel may look there, whatever else happens: one
/// bad entry would hide all behind it.
#[doc(alias = "set_robust_list")]
#[derive(Debug)]
pub struct HolderThread {
    entries: NonNull<u8>,
    words: NonNull<u8>,
    /// The robust list; `None` where the kernel marks no words.
    list: Option<List>,
    /// Number of the thread that holds the words.
    holder: u32,
    state: Mutex<HolderState>,
}

/// Files and places, and by the lock also the list.
#[derive(Debug)]
struct HolderState {
    files: Vec<Option<CellFiles>>,
    /// Index of the files that cells are taken from.
    current: Option<usize>,
    /// Words that are held.
    held: usize,
    /// Places for files of cells that are free.
    empty: Vec<usize>,
    /// Places for others' rights, behind those, that are free.
    free: Vec<usize>,
}

/// A file of cells, and one of rights.
#[derive(Debug)]
struct CellFiles {
    files: Arc<[OwnedFd; 2]>,
    /// Cells in front that are or were held.
    used: usize,
    /// Cells that are held.
    held: usize,
}

/// A word that is held.
#[derive(Debug)]
pub struct HeldWord {
    slot: usize,
    cell: usize,
    files: Arc<[OwnedFd; 2]>,
}

impl HeldWord {
    /// The file that the word is in, for the watcher, and that of the rights.
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        self.files.each_ref().map(AsFd::as_fd)
    }

    /// The number of the word's cell in its file.
    pub fn cell(&self) -> usize {
        self.cell
    }
}

/// A right that this process holds.
#[derive(Debug)]
pub struct HeldRight {
    slot: usize,
    cell: usize,
}

// SAFETY: the memory stays mapped, and everything in it is an atomic.
unsafe impl Send for HolderThread {}
// SAFETY: as above; the list is changed under `state` alone.
unsafe impl Sync for HolderThread {}

/// Places for files: one more than there can be words. If each word is the last of its
/// file that is held, one place is left to begin anew.
const FILE_SLOTS: usize = MAX_WORDS + 1;

impl HolderThread {
    /// Starts the thread. Where the kernel marks no words there is none.
    ///
    /// # Errors
    /// When there is no memory or thread left; `Unsupported` where no memory can be
    /// sealed.
    pub fn start() -> io::Result<HolderThread> {
        let part = (FILE_SLOTS + MAX_RIGHTS) * page_size();
        let size = page_size() + 2 * part;
        let start = map(size)?;
        HolderThread::begin(start, part).inspect_err(|_| {
            // SAFETY: a mapping of ours, where no thread has its list: the one that
            // tried has ended, and the one that was to hold the words was not made,
            // or refused the list.
            let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), size) };
        })
    }

    /// Starts in mapped memory, with two parts of this size behind the first page.
    fn begin(start: NonNull<u8>, part: usize) -> io::Result<HolderThread> {
        // SAFETY: the offsets lie within the mapping.
        let (entries, words) = unsafe { (start.add(page_size()), start.add(page_size() + part)) };
        let offset = c_long::try_from(part).unwrap_or(c_long::MAX);
        // SAFETY: a page of that mapping, which no other code knows of.
        let begin = || unsafe { List::begin(start.cast(), offset) };
        // SAFETY: the first of each part.
        let first = unsafe { ListEntry::new(entries.cast(), words.cast()) };
        let (list, holder) = match marks_words(begin(), first)? {
            true => {
                let list = begin();
                (Some(list), start_holder(list)?)
            }
            false => (None, std::process::id()),
        };
        Ok(HolderThread {
            entries,
            words,
            list,
            holder,
            state: Mutex::new(HolderState {
                files: (0..FILE_SLOTS).map(|_| None).collect(),
                current: None,
                held: 0,
                empty: (0..FILE_SLOTS).rev().collect(),
                free: (FILE_SLOTS..FILE_SLOTS + MAX_RIGHTS).rev().collect(),
            }),
        })
    }

    /// True if the kernel marks the words when this process ends. If not, they tell of
    /// releases only.
    pub fn marks(&self) -> bool {
        self.list.is_some()
    }

    /// Holds a word, which says from now on that the process lives; none if
    /// [`MAX_WORDS`] are held. The word's file is sealed: a watcher can map it for
    /// reading only, and no process can make it shorter.
    ///
    /// # Errors
    /// When there is no descriptor or memory for another file.
    pub fn hold(&self, facts: &Facts) -> io::Result<Option<HeldWord>> {
        let mut state = self.state();
        if state.held == MAX_WORDS {
            return Ok(None);
        }
        let slot = self.room(&mut state)?;
        let Some(place) = &mut state.files[slot] else {
            return Ok(None);
        };
        let held = HeldWord {
            slot,
            cell: place.used,
            files: Arc::clone(&place.files),
        };
        place.used += 1;
        place.held += 1;
        state.held += 1;
        for (to, fact) in self.facts(&held).iter().zip(facts) {
            // Relaxed: the SeqCst store of the word publishes the facts.
            to.store(*fact, Ordering::Relaxed);
        }
        // A watcher that sees the word sees the facts.
        let entry = self.entry(held.slot, held.cell * CELL);
        match self.list {
            Some(list) => list.hold(entry, self.holder),
            None => entry.word.store(self.holder | WAITERS, Ordering::SeqCst),
        }
        Ok(Some(held))
    }

    /// Releases a word, which says so from now on, and wakes all who sleep on it.
    pub fn release(&self, held: &HeldWord) {
        let mut state = self.state();
        let entry = self.entry(held.slot, held.cell * CELL);
        self.give_back(entry, 0);
        state.held -= 1;
        let Some(slot) = &mut state.files[held.slot] else {
            return;
        };
        slot.held -= 1;
        if slot.held == 0 && slot.used == cells() {
            // The place may be another's from now on. Until then it stays mapped.
            state.files[held.slot] = None;
            state.empty.push(held.slot);
        }
    }

    /// Takes a right, unless another process has it; `None` then. It is free again when
    /// this process dies.
    ///
    /// # Errors
    /// `Unsupported` where the kernel marks no words; `StorageFull` if this process has
    /// [`MAX_RIGHTS`]; when there is no memory.
    pub fn claim(&self, rights: &MappedRights, cell: usize) -> io::Result<Option<HeldRight>> {
        let list = self
            .list
            .ok_or_else(|| crate::unsupported("a robust list that the kernel walks"))?;
        let mut state = self.state();
        let slot = state.free.pop().ok_or(io::ErrorKind::StorageFull)?;
        // SAFETY: a page is mapped there for as long as `rights`.
        unsafe { self.place(slot).put_other(rights.start())? };
        if list.claim(self.entry(slot, right_offset(cell)), self.holder) {
            return Ok(Some(HeldRight { slot, cell }));
        }
        self.free_right_slot(&mut state, slot);
        Ok(None)
    }

    /// Gives a right back with `value` in it, unless another process has written there
    /// since, and wakes all who sleep on it.
    pub fn give(&self, claimed: &HeldRight, value: u32) {
        let mut state = self.state();
        self.give_back(self.entry(claimed.slot, right_offset(claimed.cell)), value);
        self.free_right_slot(&mut state, claimed.slot);
    }

    /// Unmaps another process's rights from a place.
    fn free_right_slot(&self, state: &mut HolderState, place: usize) {
        if self.place(place).clear().is_ok() {
            state.free.push(place);
        }
    }

    fn give_back(&self, entry: ListEntry<'_>, value: u32) {
        match self.list {
            Some(list) => {
                list.give(entry, self.holder, value, || wake(entry.word));
            }
            None => {
                entry.word.store(value, Ordering::SeqCst);
                wake(entry.word);
            }
        }
    }

    /// The index of files with a free cell.
    fn room(&self, state: &mut HolderState) -> io::Result<usize> {
        let has_room = |at: &usize| {
            let slot = state.files[*at].as_ref();
            slot.is_some_and(|slot| slot.used < cells())
        };
        if let Some(current) = state.current.filter(has_room) {
            return Ok(current);
        }
        let files = [sealable()?, create_rights_file()?];
        let place = state.empty.pop().ok_or(io::ErrorKind::StorageFull)?;
        // No word is held in there: the list does not lead to it.
        self.place(place).put_cells(&files[0])?;
        state.files[place] = Some(CellFiles {
            files: Arc::new(files),
            used: 0,
            held: 0,
        });
        state.current = Some(place);
        Ok(place)
    }

    fn state(&self) -> MutexGuard<'_, HolderState> {
        self.state.lock()
    }

    /// The page of a file's words.
    fn place(&self, number: usize) -> PageSlot {
        // SAFETY: a number below FILE_SLOTS + MAX_RIGHTS, so within the words.
        unsafe { PageSlot::new(self.words.add(number * page_size())) }
    }

    /// A word and its list entry.
    fn entry(&self, number: usize, offset: usize) -> ListEntry<'_> {
        let offset = number * page_size() + offset;
        // SAFETY: as above, and a cell's offset within a slot: within the
        // mappings, which are never unmapped, and aligned.
        unsafe {
            ListEntry::new(
                self.entries.add(offset).cast(),
                self.words.add(offset).cast(),
            )
        }
    }

    /// The numbers beside a word.
    fn facts(&self, held: &HeldWord) -> &[AtomicU32; FACTS] {
        let offset = held.slot * page_size() + held.cell * CELL + size_of::<AtomicU32>();
        // SAFETY: behind a word of ours, up to the end of its cell; zero bytes are
        // a valid value.
        unsafe { self.words.add(offset).cast().as_ref() }
    }
}
