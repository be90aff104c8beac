//! How much pipe memory this process may ask for beyond the defaults.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The size that a pipe gets once it carries volume. More brings nothing to
/// writers of 64 KiB and takes from a budget that all programs of a user share.
pub(crate) const VOLUME_CAPACITY: usize = 256 * 1024;

/// A quarter of what the kernel lets one user's processes have before it gives
/// all of them pipes of 8 KiB (`pipe-user-pages-soft`, 16,384 pages): enough
/// for 64 large pipes, and never the reason why another program starves.
const BUDGET: usize = 16 * 1024 * 1024;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct PipeMemoryGrant(usize);

impl PipeMemoryGrant {
    /// Takes `bytes`, unless that much is not left.
    pub(crate) fn take(bytes: usize) -> Option<PipeMemoryGrant> {
        let take = |taken: usize| taken.checked_add(bytes).filter(|&sum| sum <= BUDGET);
        // Relaxed: a count, which protects no memory. Two threads that take at once
        // are in the order of this one word.
        TAKEN
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .ok()
            .map(|_| PipeMemoryGrant(bytes))
    }
}

impl Drop for PipeMemoryGrant {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.0, Ordering::Relaxed);
    }
}
