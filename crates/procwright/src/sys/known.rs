//! An answer that stays what it was.

use std::sync::atomic::{AtomicU8, Ordering};

/// What is found out once in a process. Not a `OnceLock`: a fork that comes while another
/// thread is at it would wait for that thread for ever.
pub(crate) struct Known(AtomicU8);

const UNKNOWN: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

impl Known {
    pub(crate) const fn new() -> Known {
        Known(AtomicU8::new(UNKNOWN))
    }

    /// What is known, or is found out now; by several threads, if they come at once.
    pub(crate) fn or_find(&self, find: impl FnOnce() -> bool) -> bool {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => {
                let found = find();
                self.0
                    .store(if found { YES } else { NO }, Ordering::Relaxed);
                found
            }
            known => known == YES,
        }
    }
}
