//! The survivors' side: the right to clean up after a dead holder.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags};

use super::{CELL, cells, page_size};
use crate::memfd::{SealedFile, invalid_data};

/// The rights beside the cells of a process, mapped. Every process that was invited
/// can write anything there.
#[derive(Debug)]
pub struct MappedRights {
    words: NonNull<u8>,
}

// SAFETY: a mapping that is ours, used through atomics only.
unsafe impl Send for MappedRights {}
// SAFETY: as above.
unsafe impl Sync for MappedRights {}

impl MappedRights {
    /// Maps the rights of another process.
    ///
    /// # Errors
    /// `InvalidData` if `file` is no file of rights, or one that could be cut short.
    pub fn map(file: BorrowedFd<'_>) -> io::Result<MappedRights> {
        let sealed = SealedFile::check_as(
            file,
            "the second is no file in memory that can be sealed",
            "the size of the second file is not sealed",
        )?;
        if sealed.is_read_only {
            return Err(invalid_data("the second file is sealed against writing"));
        }
        if sealed.size != page_size() as u64 {
            return Err(invalid_data("the second file has another size"));
        }
        // SAFETY: a fresh mapping at a place of the kernel's choice.
        let words = unsafe {
            let writable = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap(
                ptr::null_mut(),
                page_size(),
                writable,
                MapFlags::SHARED,
                file,
                0,
            )
        };
        let words = words.map_err(|error| match error {
            // The descriptor was opened for reading only.
            rustix::io::Errno::ACCESS => invalid_data("the second file cannot be written to"),
            error => error.into(),
        })?;
        let words = NonNull::new(words.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(MappedRights { words })
    }

    /// The right to clean up after the holder of a cell.
    pub fn word(&self, cell: usize) -> &AtomicU32 {
        // SAFETY: within the mapping, which lives as long as `self`, aligned.
        unsafe { self.words.add(right_offset(cell)).cast().as_ref() }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.words
    }
}

/// The offset of the right of a cell. A cell that is not one of those that lie side by
/// side has its file for itself.
pub(super) fn right_offset(cell: usize) -> usize {
    match cell < cells() {
        true => cell * CELL,
        false => 0,
    }
}

impl Drop for MappedRights {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives us. What
        // the ledger has of it is a mapping of its own.
        let _ = unsafe { rustix::mm::munmap(self.words.as_ptr().cast(), page_size()) };
    }
}
