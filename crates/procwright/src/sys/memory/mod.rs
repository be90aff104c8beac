//! Reading into memory that is not initialised yet, and advice about its pages.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

/// Reads at most `max` bytes into the reserved, unused part of `memory`, never
/// beyond it, and returns how many there were.
pub(crate) fn read_into_spare(
    fd: BorrowedFd<'_>,
    memory: &mut Vec<u8>,
    max: usize,
) -> io::Result<usize> {
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

/// Asks for huge pages for the pages that `block` lies in.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn advise_huge(block: &mut [MaybeUninit<u8>]) {
    let page = rustix::param::page_size();
    let start = block.as_mut_ptr();
    // Whole pages, outwards: a mapping of which a part has other flags is two
    // mappings, and those the allocator cannot move in one go.
    let before = start.addr() % page;
    let length = (before + block.len()).next_multiple_of(page);
    // SAFETY: `MADV_HUGEPAGE` changes neither contents nor protection nor
    // whether anything is mapped, so it is sound for any range: what else lies
    // in the first and last page notices nothing. What it answers matters only
    // to speed.
    unsafe {
        libc::madvise(
            start.wrapping_sub(before).cast(),
            length,
            libc::MADV_HUGEPAGE,
        )
    };
}

/// There are no huge pages to be asked for.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn advise_huge(_block: &mut [MaybeUninit<u8>]) {}
