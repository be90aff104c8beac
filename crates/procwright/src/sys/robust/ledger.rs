//! The holder's side: its cells, and the thread whose end marks them.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::c_long;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::{AWAITED, CELL, DIED, FACTS, Facts, MOST, sheet, wake};
use crate::sys::thread;

/// An entry of the list, as the kernel wants it (`struct robust_list`), and the
/// way back, which the kernel does not look at.
#[repr(C)]
struct Link {
    next: AtomicPtr<Link>,
    previous: AtomicPtr<Link>,
}

/// The head of a thread's list (`struct robust_list_head`).
#[repr(C)]
struct Head {
    /// Points to itself while the list is empty: the kernel's end mark.
    first: AtomicPtr<Link>,
    /// From an entry to its word, in bytes.
    offset: c_long,
    /// The entry that is being put in or taken out, which the kernel looks at
    /// whether it is in the list or not.
    pending: AtomicPtr<Link>,
}

/// The cells of this process.
///
/// In memory there are three parts: a page with the head, the entries, and the
/// words, which are in files, a page each. Entries and words have the same distance
/// from each other, so that one offset leads from any entry to its word. None of
/// it is ever unmapped while the kernel may look there, whatever else happens: one
/// bad entry would hide all behind it. Entries are shared memory, too, though
/// nobody shares them: what is private may be taken away by the kernel's
/// out-of-memory reaper before the walk.
#[derive(Debug)]
pub(crate) struct Ledger {
    head: NonNull<Head>,
    entries: NonNull<u8>,
    words: NonNull<u8>,
    /// The number of the thread that holds the words.
    holder: u32,
    state: Mutex<State>,
}

/// What is changed by one at a time, and the list with it.
#[derive(Debug)]
struct State {
    sheets: Vec<Option<Sheet>>,
    /// The one that cells are taken from.
    current: usize,
    held: usize,
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

// SAFETY: the memory stays mapped, and everything in it is an atomic.
unsafe impl Send for Ledger {}
// SAFETY: as above; the links are changed under `state` alone.
unsafe impl Sync for Ledger {}

/// One more than there can be words: if each is the last of its sheet that is
/// held, one sheet is left to begin anew.
const SHEETS: usize = MOST + 1;

impl Ledger {
    /// # Errors
    /// When there is no memory or thread left; `Unsupported` if the kernel does not
    /// mark the words of a thread that ends.
    pub(crate) fn start() -> io::Result<Ledger> {
        let part = SHEETS * sheet();
        let start = map(sheet() + 2 * part)?;
        // SAFETY: the offsets lie within the mapping.
        let (entries, words) = unsafe { (start.add(sheet()), start.add(sheet() + part)) };
        let list = List {
            head: start.cast::<Head>().as_ptr(),
            offset: c_long::try_from(part).unwrap_or(c_long::MAX),
        };
        if !marks_words(list, entries.cast().as_ptr(), words.cast().as_ptr())? {
            return Err(crate::sys::unsupported(
                "a robust list that the kernel walks",
            ));
        }
        let holder = keep(list)?;
        Ok(Ledger {
            head: start.cast(),
            entries,
            words,
            holder,
            state: Mutex::new(State {
                sheets: (0..SHEETS).map(|_| None).collect(),
                current: 0,
                held: 0,
            }),
        })
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
        self.link(&held, facts);
        Ok(Some(held))
    }

    /// The word says that it was released.
    pub(crate) fn release(&self, held: &Held) {
        let mut state = self.state();
        self.unlink(held);
        state.held -= 1;
        let Some(sheet) = &mut state.sheets[held.sheet] else {
            return;
        };
        sheet.held -= 1;
        if sheet.held == 0 && sheet.used == cells() {
            // Its place may be another's. Until then it stays mapped.
            state.sheets[held.sheet] = None;
        }
    }

    /// A sheet with a free cell.
    fn room(&self, state: &mut State) -> io::Result<usize> {
        let has_room = |sheet: &Option<Sheet>| match sheet {
            None => true,
            Some(sheet) => sheet.used < cells(),
        };
        if !has_room(&state.sheets[state.current]) {
            state.current = state
                .sheets
                .iter()
                .position(has_room)
                .ok_or(io::ErrorKind::StorageFull)?;
        }
        if state.sheets[state.current].is_none() {
            let rights = rights()?;
            let cells = self.open(state.current)?;
            state.sheets[state.current] = Some(Sheet {
                files: Arc::new([cells, rights]),
                used: 0,
                held: 0,
            });
        }
        Ok(state.current)
    }

    /// A new file in the place of a sheet that nothing is held in.
    fn open(&self, place: usize) -> io::Result<OwnedFd> {
        let file = sealable()?;
        // SAFETY: a part of our own mapping, in which no word is held: the list
        // leads nowhere there. It is replaced in one step.
        unsafe {
            let at = self.words.add(place * sheet()).as_ptr().cast();
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            let writable = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap(at, sheet(), writable, flags, &file, 0)?;
            // A fork could write to them.
            rustix::mm::madvise(at, sheet(), Advice::LinuxDontFork)?;
        }
        rustix::fs::fcntl_add_seals(
            &file,
            // The mapping that we have stays writable; nobody gets another.
            SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
        )?;
        Ok(file)
    }

    /// Whenever we are killed in here, the kernel finds every word that has the
    /// holder's number, by the list or as the pending one: so the order.
    fn link(&self, held: &Held, facts: &Facts) {
        let (link, word, beside) = self.at(held);
        for (to, fact) in beside.iter().zip(facts) {
            to.store(*fact, Ordering::Relaxed);
        }
        let (head, end) = (self.head(), self.head.as_ptr().cast());
        let this = ptr::from_ref(link).cast_mut();
        head.pending.store(this, Ordering::SeqCst);
        // Whoever sees the word sees the facts.
        word.store(self.holder | AWAITED, Ordering::SeqCst);
        let next = head.first.load(Ordering::Relaxed);
        link.next.store(next, Ordering::Relaxed);
        link.previous.store(end, Ordering::Relaxed);
        if next != end {
            // SAFETY: what is in the list is an entry of ours or the end.
            unsafe { &*next }.previous.store(this, Ordering::Relaxed);
        }
        head.first.store(this, Ordering::SeqCst);
        head.pending.store(ptr::null_mut(), Ordering::SeqCst);
    }

    fn unlink(&self, held: &Held) {
        let (link, word, _) = self.at(held);
        let (head, end) = (self.head(), self.head.as_ptr().cast());
        head.pending
            .store(ptr::from_ref(link).cast_mut(), Ordering::SeqCst);
        let next = link.next.load(Ordering::Relaxed);
        let previous = link.previous.load(Ordering::Relaxed);
        let before = match previous == end {
            true => &head.first,
            // SAFETY: what is in the list is an entry of ours or the end.
            false => unsafe { &(*previous).next },
        };
        before.store(next, Ordering::SeqCst);
        if next != end {
            // SAFETY: as above.
            unsafe { &*next }
                .previous
                .store(previous, Ordering::Relaxed);
        }
        word.store(0, Ordering::SeqCst);
        wake(word);
        // If we are killed before this, the kernel looks at a word that does not
        // have the holder's number any more, and leaves it alone.
        head.pending.store(ptr::null_mut(), Ordering::SeqCst);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head(&self) -> &Head {
        // SAFETY: the holder wrote it before the ledger was made; it is never
        // unmapped, and has nothing but atomics that change.
        unsafe { self.head.as_ref() }
    }

    /// The entry of a word, the word, and what stands beside it.
    fn at(&self, held: &Held) -> (&Link, &AtomicU32, &[AtomicU32; FACTS]) {
        let offset = held.sheet * sheet() + held.cell * CELL;
        // SAFETY: both numbers were given out by `hold`, so this is within the
        // mappings, aligned; zero bytes are a valid value of all of it, and the
        // facts end with the cell.
        unsafe {
            let word = self.words.add(offset).cast::<AtomicU32>();
            (
                self.entries.add(offset).cast::<Link>().as_ref(),
                word.as_ref(),
                word.add(1).cast().as_ref(),
            )
        }
    }
}

/// How many cells a sheet has.
fn cells() -> usize {
    sheet() / CELL
}

/// A file in memory that can be sealed, of the size that it will have.
fn sealable() -> io::Result<OwnedFd> {
    let name = "procwright-liveness";
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Not to be executed, where the kernel knows that (6.3).
    let file = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(name, flags))?;
    rustix::fs::ftruncate(&file, sheet() as u64)?;
    Ok(file)
}

/// A file of rights, one beside each cell of a file of cells. The holder has no
/// part in it. Survivors write there, so that nothing but its size is sealed.
pub(crate) fn rights() -> io::Result<OwnedFd> {
    let file = sealable()?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Shared memory that no fork gets.
fn map(size: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a fresh mapping at a place of the kernel's choice.
    let start = unsafe {
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        let start = rustix::mm::mmap_anonymous(ptr::null_mut(), size, writable, flags)?;
        rustix::mm::madvise(start, size, Advice::LinuxDontFork)?;
        start
    };
    NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory.into())
}

/// A list to be, as a thread of ours gets it.
#[derive(Clone, Copy)]
struct List {
    head: *mut Head,
    offset: c_long,
}

// SAFETY: it points to memory that is mapped for ever.
unsafe impl Send for List {}

impl List {
    /// Makes it the calling thread's own, empty, and returns that thread's number.
    ///
    /// # Safety
    /// Nobody else uses the memory of the head, and no lock of the C library's
    /// that is robust is held by this thread or will be: its list is this one.
    unsafe fn adopt(self) -> io::Result<u32> {
        // SAFETY: memory of ours, aligned, of at least that size.
        unsafe {
            self.head.write(Head {
                first: AtomicPtr::new(self.head.cast()),
                offset: self.offset,
                pending: AtomicPtr::new(ptr::null_mut()),
            });
        }
        // SAFETY: the head is whole and stays where it is until this thread ends.
        let result =
            unsafe { libc::syscall(libc::SYS_set_robust_list, self.head, size_of::<Head>()) };
        match result {
            0 => Ok(rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .cast_unsigned()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Enough for a panic to be told of.
const STACK: usize = 128 * 1024;

/// Starts the thread that holds the words. It ends when the process does, or its
/// program: there is nothing that it would ever do.
fn keep(list: List) -> io::Result<u32> {
    let (told, number) = mpsc::sync_channel(1);
    thread::spawn_bare(c"procwright-alive", STACK, move || {
        // The whole of it, not a part: what is not Send would be captured.
        let list = list;
        // SAFETY: the head is given to this thread alone, which takes no lock.
        let adopted = unsafe { list.adopt() };
        let has_it = adopted.is_ok();
        let _ = told.send(adopted);
        if has_it {
            loop {
                rustix::event::pause();
            }
        }
    })?;
    number.recv().unwrap_or_else(|_| {
        Err(io::Error::other(
            "the thread that holds the words has ended",
        ))
    })
}

/// Whether the kernel marks the word of a thread that ends: some that look like
/// Linux (gVisor, emulators) take the list and never look at it. A thread of ours
/// tries.
fn marks_words(list: List, entry: *mut Link, word: *const AtomicU32) -> io::Result<bool> {
    struct Trial(List, *mut Link, *const AtomicU32);
    // SAFETY: as for `List`.
    unsafe impl Send for Trial {}
    let trial = Trial(list, entry, word);
    let tried = thread::spawn_bare(c"procwright-trial", STACK, move || {
        let Trial(list, entry, word) = { trial };
        // SAFETY: nobody else knows this memory yet, and it is mapped for ever;
        // the thread takes no lock until it ends.
        unsafe {
            let Ok(number) = list.adopt() else { return };
            (*word).store(number | AWAITED, Ordering::SeqCst);
            (*entry).next.store(list.head.cast(), Ordering::SeqCst);
            (*list.head).first.store(entry, Ordering::SeqCst);
        }
    })?;
    tried.join();
    // SAFETY: mapped for ever.
    let word = unsafe { &*word };
    // The kernel walks the list before it tells anybody that the thread has ended.
    let marked = word.load(Ordering::SeqCst) & DIED != 0;
    word.store(0, Ordering::SeqCst);
    Ok(marked)
}
