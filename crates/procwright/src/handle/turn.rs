//! One at a time: whose turn it is to sleep on a descriptor.
//!
//! If every reader of a pipe polled it, one byte would wake them all, and a
//! close as well. Here one polls and the others queue. Whoever leaves wakes the
//! next, so that the closer wakes one and pays for one, however many there are.

use std::time::Instant;

use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::time::Deadline;

#[derive(Debug)]
pub(crate) struct Turn {
    taken: Mutex<bool>,
    left: Condvar,
}

/// It is ours; dropping it passes it on.
#[derive(Debug)]
pub(crate) struct Mine<'a>(&'a Turn);

impl Turn {
    pub(crate) fn new() -> Turn {
        Turn {
            taken: Mutex::new(false),
            left: Condvar::new(),
        }
    }

    /// Waits for the turn; none once `over` says so, or the deadline has come.
    pub(crate) fn take(&self, deadline: Deadline, over: impl Fn() -> bool) -> Option<Mine<'_>> {
        let mut taken = self.lock();
        while *taken && !over() {
            taken = match deadline.remaining(Instant::now()) {
                None => wait(&self.left, taken),
                Some(left) if left.is_zero() => return None,
                Some(left) => wait_timeout(&self.left, taken, left),
            };
        }
        if over() {
            // The next has to learn of it as well, and it was us who were woken.
            self.left.notify_one();
            return None;
        }
        *taken = true;
        Some(Mine(self))
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.taken
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Mine<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.left.notify_one();
    }
}

fn wait<'a>(condvar: &Condvar, guard: MutexGuard<'a, bool>) -> MutexGuard<'a, bool> {
    condvar
        .wait(guard)
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn wait_timeout<'a>(
    condvar: &Condvar,
    guard: MutexGuard<'a, bool>,
    left: std::time::Duration,
) -> MutexGuard<'a, bool> {
    let waited = condvar.wait_timeout(guard, left);
    waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
}
