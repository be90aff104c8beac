//! The memory that words and entries are in.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};

use rustix::fs::SealFlags;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};

use super::sheet;
use crate::sys::sealed;

/// A file in memory that can be sealed, of the size that it will have.
pub(super) fn sealable() -> io::Result<OwnedFd> {
    sealed::create("procwright-liveness", sheet() as u64)
}

/// From now on the mapping that we have stays writable; nobody gets another, and
/// nobody changes its size.
pub(super) fn seal(file: &OwnedFd) -> io::Result<()> {
    let all = SealFlags::FUTURE_WRITE | sealed::SIZE;
    Ok(rustix::fs::fcntl_add_seals(file, all)?)
}

/// A file of rights, one beside each cell of a file of cells. The holder has no
/// part in it. Survivors write there, so that nothing but its size is sealed.
pub(crate) fn rights() -> io::Result<OwnedFd> {
    let file = sealable()?;
    rustix::fs::fcntl_add_seals(&file, sealed::SIZE)?;
    Ok(file)
}

/// Shared memory that no fork gets.
///
/// Shared, though nobody shares it: what is private may be taken away by the
/// kernel's out-of-memory reaper before the kernel walks the list in there.
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
/// If that fails, the kernel may have taken away already what was there, and put
/// there what another thread maps meanwhile: such a place is not to be used again.
#[derive(Clone, Copy)]
pub(super) struct Place(NonNull<u8>);

impl Place {
    /// # Safety
    /// It is within such memory, at the beginning of a page.
    pub(super) unsafe fn new(at: NonNull<u8>) -> Place {
        Place(at)
    }

    /// Puts a file of cells there. Nobody else will get a mapping of it that can be
    /// written to.
    pub(super) fn put_cells(self, file: &OwnedFd) -> io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: a page of ours, says `new`.
        unsafe { rustix::mm::mmap(self.at(), sheet(), WRITABLE, flags, file, 0)? };
        self.hide()?;
        seal(file)
    }

    /// Puts there what is mapped somewhere else, too, and shared.
    ///
    /// # Safety
    /// A page is mapped at `other`.
    pub(super) unsafe fn put_other(self, other: NonNull<u8>) -> io::Result<()> {
        let fixed = MremapFlags::MAYMOVE;
        // SAFETY: the old size of 0 leaves what is there and makes a second mapping
        // of it (mremap(2)), in a page of ours, says `new`.
        unsafe {
            rustix::mm::mremap_fixed(other.as_ptr().cast(), 0, sheet(), fixed, self.at())?;
        }
        self.hide()
    }

    /// Puts nothing there.
    pub(super) fn clear(self) -> io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: a page of ours, says `new`.
        unsafe { rustix::mm::mmap_anonymous(self.at(), sheet(), WRITABLE, flags)? };
        self.hide()
    }

    /// A fork could write to it.
    fn hide(self) -> io::Result<()> {
        // SAFETY: a page of ours, says `new`.
        unsafe { rustix::mm::madvise(self.at(), sheet(), Advice::LinuxDontFork)? };
        Ok(())
    }

    fn at(self) -> *mut std::ffi::c_void {
        self.0.as_ptr().cast()
    }
}
