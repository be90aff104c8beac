//! The memory that words and entries are in.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};

use rustix::fs::SealFlags;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};

use super::page_size;
use crate::memfd;

/// A file in memory, of its final size, that can be sealed.
pub(super) fn sealable() -> io::Result<OwnedFd> {
    memfd::create("procwright-liveness", page_size() as u64)
}

/// Seals a file: the mapping that exists stays writable, no other can be made, and the
/// size is fixed.
pub(super) fn seal(file: &OwnedFd) -> io::Result<()> {
    let all = SealFlags::FUTURE_WRITE | memfd::SIZE_SEALS;
    Ok(rustix::fs::fcntl_add_seals(file, all)?)
}

/// Makes a file of rights, one beside each cell of a file of cells. The holder has no
/// part in it. Survivors write there, so that nothing but its size is sealed.
///
/// # Errors
/// When there is no descriptor or memory left.
#[doc(alias = "memfd_create")]
pub fn create_rights_file() -> io::Result<OwnedFd> {
    let file = sealable()?;
    rustix::fs::fcntl_add_seals(&file, memfd::SIZE_SEALS)?;
    Ok(file)
}

/// Maps shared memory that no fork gets.
///
/// Shared, though no other process shares it: what is private may be taken away by
/// the kernel's out-of-memory reaper before the kernel walks the list in there.
pub(super) fn map(size: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a fresh mapping at a place of the kernel's choice.
    let start = unsafe {
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        let start = rustix::mm::mmap_anonymous(ptr::null_mut(), size, WRITABLE, flags)?;
        rustix::mm::madvise(start, size, Advice::LinuxDontFork)?;
        start
    };
    NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory.into())
}

const WRITABLE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// A page within memory of [`map`], which is replaced in one step. Nothing that the
/// list leads to may be in it.
///
/// A replacement that fails may have taken away the old page already, and the kernel
/// put there what another thread maps meanwhile: such a place is not to be used again.
#[derive(Clone, Copy)]
pub(super) struct PageSlot(NonNull<u8>);

impl PageSlot {
    /// # Safety
    /// `at` is within such memory, at the beginning of a page.
    pub(super) unsafe fn new(at: NonNull<u8>) -> PageSlot {
        PageSlot(at)
    }

    /// Maps a file of cells there, and seals it: no other mapping of it will be
    /// writable.
    pub(super) fn put_cells(self, file: &OwnedFd) -> io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: a page of ours, says `new`.
        unsafe { rustix::mm::mmap(self.at(), page_size(), WRITABLE, flags, file, 0)? };
        self.exclude_from_forks()?;
        seal(file)
    }

    /// Maps there a second time what is mapped and shared at `other`.
    ///
    /// # Safety
    /// A page is mapped at `other`.
    pub(super) unsafe fn put_other(self, other: NonNull<u8>) -> io::Result<()> {
        let fixed = MremapFlags::MAYMOVE;
        // SAFETY: the old size of 0 leaves what is there and makes a second mapping
        // of it (mremap(2)), in a page of ours, says `new`.
        unsafe {
            rustix::mm::mremap_fixed(other.as_ptr().cast(), 0, page_size(), fixed, self.at())?;
        }
        self.exclude_from_forks()
    }

    /// Maps empty memory there.
    pub(super) fn clear(self) -> io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: a page of ours, says `new`.
        unsafe { rustix::mm::mmap_anonymous(self.at(), page_size(), WRITABLE, flags)? };
        self.exclude_from_forks()
    }

    /// Keeps the page from forks, which could write to it.
    fn exclude_from_forks(self) -> io::Result<()> {
        // SAFETY: a page of ours, says `new`.
        unsafe { rustix::mm::madvise(self.at(), page_size(), Advice::LinuxDontFork)? };
        Ok(())
    }

    fn at(self) -> *mut std::ffi::c_void {
        self.0.as_ptr().cast()
    }
}
