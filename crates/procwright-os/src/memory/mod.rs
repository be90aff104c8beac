//! Memory that is not initialised yet: reading into it, and the pages that it gets.

mod block;
mod pages;

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

pub use block::{Block, Filler};
pub use pages::{PageSize, advise, populate};

/// Returns whether the system would map so many bytes more for this process now: for those
/// whose growth loses the data when it fails.
///
/// They are mapped and given back, and no allocator is asked. Each block that glibc's gives
/// back makes it serve blocks of that size from its heap from then on, up to 32 MiB, where
/// they grow by a copy and not by their page tables: as if the question were a wish.
///
/// # Platform
/// A system that promises more than it has, as Linux usually does, says yes to what it will
/// kill a process for.
///
/// ```
/// use procwright_os::memory::can_map;
///
/// assert!(can_map(1 << 20));
/// assert!(!can_map(usize::MAX / 2));
/// ```
#[doc(alias = "mmap")]
#[must_use]
pub fn can_map(bytes: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place, and nobody has seen the mapping when it goes.
    unsafe {
        match mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) {
            Ok(start) => munmap(start, bytes).is_ok(),
            Err(_) => false,
        }
    }
}

/// Reads at most `max` bytes into the reserved, unused part of `memory`, never
/// beyond it, and returns how many there were.
///
/// # Errors
/// Those of `read(2)`.
#[doc(alias = "read")]
pub fn read_into_spare(fd: BorrowedFd<'_>, memory: &mut Vec<u8>, max: usize) -> io::Result<usize> {
    let spare = memory.spare_capacity_mut();
    let max = max.min(spare.len());
    let (target, _) = spare.split_at_mut(max);
    let (read, _) = rustix::io::read(fd, target)?;
    let n = read.len();
    // SAFETY: the kernel has initialised the first `n` bytes behind the old
    // length, and `n` is no larger than the slice of the spare capacity.
    unsafe { memory.set_len(memory.len() + n) };
    Ok(n)
}
