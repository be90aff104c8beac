//! Forks held off for a moment, so that none copies what is half done.

use std::sync::atomic::{AtomicBool, Ordering};

/// Taken while forks are held off, and by a fork from before it until after it, in both
/// processes.
static HELD: AtomicBool = AtomicBool::new(false);

/// Forks of other threads are held off until this is dropped; see [`hold`](super::hold).
#[derive(Debug)]
pub struct ForkHold(());

impl ForkHold {
    /// Waits for a fork under way, and for others that hold forks off.
    pub(super) fn begin() -> ForkHold {
        // Acquire: sees what the holder before us has changed.
        while HELD.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        ForkHold(())
    }

    /// Ends a hold that was forgotten.
    ///
    /// # Safety
    /// The calling thread has forgotten one, or is the fork of a thread that has.
    pub(super) unsafe fn end() {
        drop(ForkHold(()));
    }
}

impl Drop for ForkHold {
    fn drop(&mut self) {
        // Release: the next holder sees what we have changed.
        HELD.store(false, Ordering::Release);
    }
}
