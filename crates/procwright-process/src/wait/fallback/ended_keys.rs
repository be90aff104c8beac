//! Keys of members that have ended, reported to a set by other threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::wake::Wake;

/// The keys of members that have ended, behind a descriptor that is readable while
/// there are any.
#[derive(Debug)]
pub(in crate::wait) struct EndedKeys {
    wake: Wake,
    keys: Mutex<Vec<u64>>,
}

impl EndedKeys {
    pub(in crate::wait) fn new() -> io::Result<EndedKeys> {
        Ok(EndedKeys {
            wake: Wake::new()?,
            keys: Mutex::default(),
        })
    }

    pub(in crate::wait) fn push(&self, key: u64) {
        self.keys().push(key);
        // After the push, so that the woken thread finds the key.
        self.wake.ring();
    }

    /// Takes up to `most` keys.
    pub(in crate::wait) fn take(&self, most: usize) -> Vec<u64> {
        let mut keys = self.keys();
        let most = most.min(keys.len());
        let taken = keys.drain(..most).collect();
        if keys.is_empty() {
            // Under the lock, so that a later key wakes again.
            self.wake.silence();
        }
        taken
    }

    fn keys(&self) -> MutexGuard<'_, Vec<u64>> {
        self.keys.lock()
    }
}

impl AsFd for EndedKeys {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
