//! The survivors' side: who may clean up after a dead holder.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags};

use super::{CELL, cells, sheet};
use crate::sys::sealed::{Sealed, wrong};

/// The rights beside the cells of a process, mapped. Everybody who was invited can
/// write anything there.
#[derive(Debug)]
pub(crate) struct Rights {
    words: NonNull<u8>,
}

// SAFETY: a mapping that is ours, used through atomics only.
unsafe impl Send for Rights {}
// SAFETY: as above.
unsafe impl Sync for Rights {}

impl Rights {
    /// # Errors
    /// `InvalidData` if `file` is no file of rights, or one that could be cut short.
    pub(crate) fn map(file: BorrowedFd<'_>) -> io::Result<Rights> {
        let sealed = Sealed::check_as(
            file,
            "the second is no file in memory that can be sealed",
            "the size of the second file is not sealed",
        )?;
        if sealed.is_read_only {
            return Err(wrong("the second file is sealed against writing"));
        }
        if sealed.size != sheet() as u64 {
            return Err(wrong("the second file has another size"));
        }
        // SAFETY: a fresh mapping at a place of the kernel's choice.
        let words = unsafe {
            let writable = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap(
                ptr::null_mut(),
                sheet(),
                writable,
                MapFlags::SHARED,
                file,
                0,
            )
        };
        let words = words.map_err(|error| match error {
            // A descriptor that was opened for reading only.
            rustix::io::Errno::ACCESS => wrong("the second file cannot be written to"),
            error => error.into(),
        })?;
        let words = NonNull::new(words.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Rights { words })
    }

    /// The right to clean up after the holder of a cell.
    pub(crate) fn word(&self, cell: usize) -> &AtomicU32 {
        // SAFETY: within the mapping, which lives as long as `self`, aligned.
        unsafe { self.words.add(place(cell)).cast().as_ref() }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.words
    }
}

/// Where that is. A cell that is not one of those that lie side by side has its
/// file for itself.
pub(super) fn place(cell: usize) -> usize {
    match cell < cells() {
        true => cell * CELL,
        false => 0,
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives us. What
        // the ledger has of it is a mapping of its own.
        let _ = unsafe { rustix::mm::munmap(self.words.as_ptr().cast(), sheet()) };
    }
}
