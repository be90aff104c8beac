//! Memory that is not initialised yet: reading into it, and the pages that it gets.

mod block;
mod pages;

use std::io;
use std::os::fd::BorrowedFd;

pub use block::{Block, Filler};
pub use pages::{PageSize, advise, populate};

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
