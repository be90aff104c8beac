//! The holder's side: its cells, and the list that leads the kernel to them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::c_long;

use super::keeper::{keep, marks_words};
use super::list::{Entry, List};
use super::memory::{Place, map, rights, sealable};
use super::rights::{Rights, place};
use super::{AWAITED, CELL, CLAIMS, FACTS, Facts, MOST, cells, sheet, wake};

/// The cells of this process, and the rights that it has claimed.
///
/// In memory there are three parts: a page with the head, the entries, and the
/// words, which are in files, a page each. Entries and words have the same distance
/// from each other, so that one offset leads from any entry to its word. None of
/// it is ever unmapped while the kernel may look there, whatever else happens: one
/// bad entry would hide all behind it.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: NonNull<u8>,
    words: NonNull<u8>,
    /// None where the kernel marks no words.
    list: Option<List>,
    /// The number of the thread that holds the words.
    holder: u32,
    state: Mutex<State>,
}

/// What is changed by one at a time, and the list with it.
#[derive(Debug)]
struct State {
    sheets: Vec<Option<Sheet>>,
    /// The one that cells are taken from.
    current: Option<usize>,
    held: usize,
    /// Places where a sheet may be put.
    empty: Vec<usize>,
    /// Behind those are places for others' rights.
    free: Vec<usize>,
}

/// A file of cells, and one of rights.
#[derive(Debug)]
struct Sheet {
    files: Arc<[OwnedFd; 2]>,
    /// Cells before this one are or were somebody's.
    used: usize,
    /// So many of them are.
    held: usize,
}

/// A word that is held.
#[derive(Debug)]
pub(crate) struct Held {
    sheet: usize,
    cell: usize,
    files: Arc<[OwnedFd; 2]>,
}

impl Held {
    /// The file that it is in, for whoever is to watch, and that of the rights.
    pub(crate) fn files(&self) -> [BorrowedFd<'_>; 2] {
        self.files.each_ref().map(AsFd::as_fd)
    }

    /// Its place in there.
    pub(crate) fn cell(&self) -> usize {
        self.cell
    }
}

/// A right that is ours.
#[derive(Debug)]
pub(crate) struct Claimed {
    sheet: usize,
    cell: usize,
}

// SAFETY: the memory stays mapped, and everything in it is an atomic.
unsafe impl Send for Ledger {}
// SAFETY: as above; the list is changed under `state` alone.
unsafe impl Sync for Ledger {}

/// One more than there can be words: if each is the last of its sheet that is
/// held, one sheet is left to begin anew.
const SHEETS: usize = MOST + 1;

impl Ledger {
    /// # Errors
    /// When there is no memory or thread left.
    pub(crate) fn start() -> io::Result<Ledger> {
        let part = (SHEETS + CLAIMS) * sheet();
        let size = sheet() + 2 * part;
        let start = map(size)?;
        Ledger::begin(start, part).inspect_err(|_| {
            // SAFETY: a mapping of ours, where no thread has its list: the one that
            // tried has ended, and the one that was to hold the words was not made,
            // or refused the list.
            let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), size) };
        })
    }

    /// In such memory, with two parts of this size behind the first page.
    fn begin(start: NonNull<u8>, part: usize) -> io::Result<Ledger> {
        // SAFETY: the offsets lie within the mapping.
        let (entries, words) = unsafe { (start.add(sheet()), start.add(sheet() + part)) };
        let offset = c_long::try_from(part).unwrap_or(c_long::MAX);
        // SAFETY: a page of that mapping, which nobody else knows of.
        let begin = || unsafe { List::begin(start.cast(), offset) };
        // SAFETY: the first of each part.
        let first = unsafe { Entry::new(entries.cast(), words.cast()) };
        let (list, holder) = match marks_words(begin(), first)? {
            true => {
                let list = begin();
                (Some(list), keep(list)?)
            }
            false => (None, std::process::id()),
        };
        Ok(Ledger {
            entries,
            words,
            list,
            holder,
            state: Mutex::new(State {
                sheets: (0..SHEETS).map(|_| None).collect(),
                current: None,
                held: 0,
                empty: (0..SHEETS).rev().collect(),
                free: (SHEETS..SHEETS + CLAIMS).rev().collect(),
            }),
        })
    }

    /// Whether the kernel marks the words when this process ends. Where not, they
    /// tell of releases only.
    pub(crate) fn marks(&self) -> bool {
        self.list.is_some()
    }

    /// Holds a word; none if [`MOST`] are held.
    ///
    /// # Errors
    /// When there is no descriptor or memory for another file.
    pub(crate) fn hold(&self, facts: &Facts) -> io::Result<Option<Held>> {
        let mut state = self.state();
        if state.held == MOST {
            return Ok(None);
        }
        let sheet = self.room(&mut state)?;
        let Some(place) = &mut state.sheets[sheet] else {
            return Ok(None);
        };
        let held = Held {
            sheet,
            cell: place.used,
            files: Arc::clone(&place.files),
        };
        place.used += 1;
        place.held += 1;
        state.held += 1;
        for (to, fact) in self.facts(&held).iter().zip(facts) {
            to.store(*fact, Ordering::Relaxed);
        }
        // Whoever sees the word sees the facts.
        let entry = self.entry(held.sheet, held.cell * CELL);
        match self.list {
            Some(list) => list.hold(entry, self.holder),
            None => entry.word.store(self.holder | AWAITED, Ordering::SeqCst),
        }
        Ok(Some(held))
    }

    /// The word says that it was released.
    pub(crate) fn release(&self, held: &Held) {
        let mut state = self.state();
        let entry = self.entry(held.sheet, held.cell * CELL);
        self.give_back(entry, 0);
        state.held -= 1;
        let Some(sheet) = &mut state.sheets[held.sheet] else {
            return;
        };
        sheet.held -= 1;
        if sheet.held == 0 && sheet.used == cells() {
            // Its place may be another's. Until then it stays mapped.
            state.sheets[held.sheet] = None;
            state.empty.push(held.sheet);
        }
    }

    /// Takes a right, unless somebody has it.
    ///
    /// # Errors
    /// `Unsupported` where it would not be free again when we die; `StorageFull` if
    /// this process has [`CLAIMS`]; when there is no memory.
    pub(crate) fn claim(&self, rights: &Rights, cell: usize) -> io::Result<Option<Claimed>> {
        let list = self
            .list
            .ok_or_else(|| crate::sys::unsupported("a robust list that the kernel walks"))?;
        let mut state = self.state();
        let sheet = state.free.pop().ok_or(io::ErrorKind::StorageFull)?;
        // SAFETY: a page is mapped there for as long as `rights`.
        unsafe { self.place(sheet).put_other(rights.start())? };
        if list.claim(self.entry(sheet, place(cell)), self.holder) {
            return Ok(Some(Claimed { sheet, cell }));
        }
        self.leave(&mut state, sheet);
        Ok(None)
    }

    /// A right says `value`, if nobody else has written there since.
    pub(crate) fn give(&self, claimed: &Claimed, value: u32) {
        let mut state = self.state();
        self.give_back(self.entry(claimed.sheet, place(claimed.cell)), value);
        self.leave(&mut state, claimed.sheet);
    }

    /// What is in there is others' and has no business here any more.
    fn leave(&self, state: &mut State, place: usize) {
        if self.place(place).clear().is_ok() {
            state.free.push(place);
        }
    }

    fn give_back(&self, entry: Entry<'_>, value: u32) {
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

    /// A sheet with a free cell.
    fn room(&self, state: &mut State) -> io::Result<usize> {
        let has_room = |at: &usize| {
            let sheet = state.sheets[*at].as_ref();
            sheet.is_some_and(|sheet| sheet.used < cells())
        };
        if let Some(current) = state.current.filter(has_room) {
            return Ok(current);
        }
        let files = [sealable()?, rights()?];
        let place = state.empty.pop().ok_or(io::ErrorKind::StorageFull)?;
        // No word is held in there: the list does not lead to it.
        self.place(place).put_cells(&files[0])?;
        state.sheets[place] = Some(Sheet {
            files: Arc::new(files),
            used: 0,
            held: 0,
        });
        state.current = Some(place);
        Ok(place)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page of a sheet's words.
    fn place(&self, number: usize) -> Place {
        // SAFETY: a number below SHEETS + CLAIMS, so within the words.
        unsafe { Place::new(self.words.add(number * sheet())) }
    }

    /// A word and its entry.
    fn entry(&self, number: usize, offset: usize) -> Entry<'_> {
        let offset = number * sheet() + offset;
        // SAFETY: as above, and a cell's offset within a sheet: within the
        // mappings, which are never unmapped, and aligned.
        unsafe {
            Entry::new(
                self.entries.add(offset).cast(),
                self.words.add(offset).cast(),
            )
        }
    }

    /// What stands beside a word.
    fn facts(&self, held: &Held) -> &[AtomicU32; FACTS] {
        let offset = held.sheet * sheet() + held.cell * CELL + size_of::<AtomicU32>();
        // SAFETY: behind a word of ours, up to the end of its cell; zero bytes are
        // a valid value.
        unsafe { self.words.add(offset).cast().as_ref() }
    }
}
