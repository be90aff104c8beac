//! Memory that is not initialised yet: reading into it, and the pages that it gets.

mod block;

use std::io;
use std::os::fd::BorrowedFd;

pub use block::{Block, Filler};

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

/// Asks for huge pages for a block of memory: a wish that changes the speed and
/// nothing else, wherever it points, which is why this is safe.
///
/// The whole block is advised, down to the allocator's header in front of it: advice
/// for a part would split the mapping in two, and the kernel moves only one at a
/// time, so that the next growth would copy.
#[doc(alias = "madvise")]
#[doc(alias = "MADV_HUGEPAGE")]
pub fn advise_huge(start: *const u8, length: usize) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let page = rustix::param::page_size();
        let before = start.addr() % page;
        // SAFETY: MADV_HUGEPAGE touches no content, and the kernel checks the
        // range.
        unsafe {
            libc::madvise(
                start.wrapping_sub(before).cast_mut().cast(),
                (before + length).next_multiple_of(page),
                libc::MADV_HUGEPAGE,
            );
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (start, length);
}
