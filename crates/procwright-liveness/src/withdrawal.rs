//! Leaving a call of another thread that sleeps on a word.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

use procwright_os::fork::ForkId;

/// Ends the calls that it was given to, from any thread: for hosts whose callers can leave
/// a call that sleeps on a thread of its own, as an exception of Ruby's or Python's does.
/// Without it that thread would sleep on, and take a right that nobody is there to use.
///
/// See [`Monitor::withdraw`](super::Monitor::withdraw).
#[derive(Debug)]
pub struct Withdrawal {
    has_left: AtomicBool,
    /// Number of threads that are inside of a call with this.
    inside: AtomicU32,
    process: ForkId,
}

impl Withdrawal {
    /// One for calls that are to come.
    pub fn new() -> Withdrawal {
        Withdrawal {
            has_left: AtomicBool::new(false),
            inside: AtomicU32::new(0),
            process: ForkId::current(),
        }
    }

    /// Whether the caller has left.
    pub(super) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::SeqCst)
    }

    /// Counts this thread as one that is inside, until the value is dropped.
    pub(super) fn enter(&self) -> Inside<'_> {
        self.inside.fetch_add(1, Ordering::SeqCst);
        // With the fence in `leave`: either that sees this thread counted, or this thread
        // sees that the caller has left.
        fence(Ordering::SeqCst);
        Inside(self)
    }

    /// Has all threads inside leave. `wake` wakes those that sleep.
    ///
    /// Nothing but a change of the word keeps a thread from falling asleep, and the word is
    /// not ours to change. So one wake is not enough:
    ///
    /// 1. A thread looks whether the caller has left: no.
    /// 2. The caller leaves, and this wakes all sleepers.
    /// 3. The thread falls asleep on the unchanged word, for ever.
    ///
    /// So this wakes again until nobody is inside, which takes as long as a thread needs to
    /// fall asleep.
    pub(super) fn leave(&self, wake: impl Fn()) {
        self.has_left.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // A fork has not the threads that are counted.
        while self.process.is_current() && self.inside.load(Ordering::SeqCst) != 0 {
            wake();
            std::thread::yield_now();
        }
    }
}

impl Default for Withdrawal {
    fn default() -> Withdrawal {
        Withdrawal::new()
    }
}

/// A thread that is inside of a call.
#[derive(Debug)]
pub(super) struct Inside<'a>(&'a Withdrawal);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}
