//! Larger pipes for those that carry volume.

use std::os::fd::BorrowedFd;

use crate::drain::{PipeMemoryGrant, VOLUME_CAPACITY};
use procwright_os::pipe;

/// Watches how much moves at once, and asks for a larger pipe the second time
/// that it is half a usual pipe: a program that says little keeps the default, which
/// takes less from what all programs of a user share.
#[derive(Debug, Default)]
pub(super) struct PipeGrowth {
    large: u8,
    grant: Option<PipeMemoryGrant>,
}

impl PipeGrowth {
    /// `n` bytes have moved through `fd` at once.
    pub(super) fn moved(&mut self, fd: BorrowedFd<'_>, n: usize) {
        if self.large > 2 || n < pipe::DEFAULT_CAPACITY / 2 {
            return;
        }
        self.large += 1;
        if self.large == 2 {
            // Another process may have made the pipe larger still. Any other file refuses.
            let is_small = pipe::capacity(fd).is_ok_and(|capacity| capacity < VOLUME_CAPACITY);
            if is_small && let Some(grant) = PipeMemoryGrant::take(VOLUME_CAPACITY) {
                self.grant = pipe::grow(fd, VOLUME_CAPACITY).ok().map(|_| grant);
            }
        }
    }
}
