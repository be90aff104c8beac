//! The watcher's side: somebody's cells, for reading.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags};

use super::{CELL, FACTS, cells, sheet};
use crate::sys::sealed::{Sealed, wrong};

/// The cells of a process, mapped for reading.
#[derive(Debug)]
pub(crate) struct View {
    words: NonNull<u8>,
}

// SAFETY: a mapping that is ours, read through atomics only.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// # Errors
    /// `InvalidData` if `file` is no file of cells, or one that could be cut short
    /// or written to by whoever has it.
    pub(crate) fn map(file: BorrowedFd<'_>) -> io::Result<View> {
        let sealed = Sealed::check(file)?;
        if !sealed.is_read_only {
            return Err(wrong("it is not sealed against writing"));
        }
        if sealed.size != sheet() as u64 {
            return Err(wrong("it has another size"));
        }
        // SAFETY: a fresh mapping at a place of the kernel's choice.
        let words = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                sheet(),
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        let words = NonNull::new(words.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(View { words })
    }

    /// The word of a cell, none if there is no such cell.
    pub(crate) fn word(&self, cell: usize) -> Option<&AtomicU32> {
        let at = place(cell)?;
        // SAFETY: within the mapping, which lives as long as `self`, aligned; only
        // ever read, so that its protection does not matter.
        Some(unsafe { self.words.add(at).cast().as_ref() })
    }

    /// What stands beside it.
    pub(crate) fn facts(&self, cell: usize) -> Option<&[AtomicU32; FACTS]> {
        let at = match cell < cells() {
            true => place(cell)?,
            false => place(cell).map(|_| 0)?,
        };
        // SAFETY: as in `word`; they begin behind it and end with the cell.
        Some(unsafe { self.words.add(at + 4).cast().as_ref() })
    }
}

/// Where the word of a cell is, in bytes. Behind the numbers of the cells come
/// those of all words of a file that is one thread's, which has what stands beside
/// its word in the first cell.
fn place(cell: usize) -> Option<usize> {
    match cell.checked_sub(cells()) {
        None => Some(cell * CELL),
        Some(index) => (CELL / 4..sheet() / 4)
            .contains(&index)
            .then_some(index * 4),
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives us.
        let _ = unsafe { rustix::mm::munmap(self.words.as_ptr().cast(), sheet()) };
    }
}
