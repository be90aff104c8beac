//! Memory that is not initialised yet: reading into it, and what pages it gets.

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

/// Asks for huge pages behind `region`, which need not be aligned. A wish: what
/// the system makes of it changes the speed and nothing else.
pub(crate) fn prefer_huge_pages(region: &mut [MaybeUninit<u8>]) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let page = rustix::param::page_size();
        let start = region.as_mut_ptr();
        let skip = start.align_offset(page);
        if let Some(length) = region.len().checked_sub(skip) {
            // SAFETY: the range lies within one writable slice that we hold
            // alone, and the advice does not change its content. The last page
            // may go beyond the slice, which the kernel rounds to by itself.
            unsafe {
                libc::madvise(start.add(skip).cast(), length, libc::MADV_HUGEPAGE);
            }
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = region;
}
