//! The watcher's side: another process's cells, for reading.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags};

use super::{CELL, FACTS, cells, page_size};
use crate::memfd::{SealedFile, invalid_data};

/// The cells of a process, mapped for reading.
#[derive(Debug)]
pub struct MappedCells {
    words: NonNull<u8>,
}

// SAFETY: a mapping that is ours, read through atomics only.
unsafe impl Send for MappedCells {}
// SAFETY: as above.
unsafe impl Sync for MappedCells {}

impl MappedCells {
    /// Maps the cells of another process.
    ///
    /// # Errors
    /// `InvalidData` if `file` is no file of cells, or one that could be cut short
    /// or written to by any process that has it.
    pub fn map(file: BorrowedFd<'_>) -> io::Result<MappedCells> {
        let sealed = SealedFile::check(file)?;
        if !sealed.is_read_only {
            return Err(invalid_data("it is not sealed against writing"));
        }
        if sealed.size != page_size() as u64 {
            return Err(invalid_data("it has another size"));
        }
        // SAFETY: a fresh mapping at a place of the kernel's choice.
        let words = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                page_size(),
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        let words = NonNull::new(words.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(MappedCells { words })
    }

    /// The word of a cell, none if there is no such cell.
    pub fn word(&self, cell: usize) -> Option<&AtomicU32> {
        let at = word_offset(cell)?;
        // SAFETY: within the mapping, which lives as long as `self`, aligned; only
        // ever read, so that its protection does not matter.
        Some(unsafe { self.words.add(at).cast().as_ref() })
    }

    /// The numbers beside the word of a cell, none if there is no such cell.
    pub fn facts(&self, cell: usize) -> Option<&[AtomicU32; FACTS]> {
        let at = match cell < cells() {
            true => word_offset(cell)?,
            false => word_offset(cell).map(|_| 0)?,
        };
        // SAFETY: as in `word`; they begin behind it and end with the cell.
        Some(unsafe { self.words.add(at + 4).cast().as_ref() })
    }
}

/// The offset of the word of a cell, in bytes. Behind the numbers of the cells come
/// those of all words of a file that is one thread's, which has the numbers beside its
/// word in the first cell.
fn word_offset(cell: usize) -> Option<usize> {
    match cell.checked_sub(cells()) {
        None => Some(cell * CELL),
        Some(index) => (CELL / 4..page_size() / 4)
            .contains(&index)
            .then_some(index * 4),
    }
}

impl Drop for MappedCells {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives us.
        let _ = unsafe { rustix::mm::munmap(self.words.as_ptr().cast(), page_size()) };
    }
}
