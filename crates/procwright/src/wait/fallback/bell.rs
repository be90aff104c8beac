//! What other threads ring when something in a set has ended.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::wake::Wake;

/// The keys of who has ended, behind a descriptor that is readable while there
/// are any.
#[derive(Debug)]
pub(in crate::wait) struct Bell {
    wake: Wake,
    rung: Mutex<Vec<u64>>,
}

impl Bell {
    pub(in crate::wait) fn new() -> io::Result<Bell> {
        Ok(Bell {
            wake: Wake::new()?,
            rung: Mutex::default(),
        })
    }

    pub(in crate::wait) fn ring(&self, key: u64) {
        self.rung().push(key);
        // After the key is there: whoever wakes finds it. Twice does no harm.
        self.wake.ring();
    }

    /// Takes up to `most` keys.
    pub(in crate::wait) fn take(&self, most: usize) -> Vec<u64> {
        let mut rung = self.rung();
        let most = most.min(rung.len());
        let taken = rung.drain(..most).collect();
        if rung.is_empty() {
            // Under the lock: a key that comes later rings again.
            self.wake.silence();
        }
        taken
    }

    fn rung(&self) -> MutexGuard<'_, Vec<u64>> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
