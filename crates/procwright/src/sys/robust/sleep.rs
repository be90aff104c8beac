//! Sleeping on a word, and waking those who do.

use std::sync::atomic::AtomicU32;
use std::time::Instant;

use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

use crate::time::Deadline;

/// Sleeps until somebody wakes the sleepers on `word` or the deadline comes, if it
/// still is `value` when the kernel looks. May return for nothing.
pub(crate) fn sleep(word: &AtomicU32, value: u32, deadline: Deadline) {
    let timeout = deadline
        .remaining(Instant::now())
        .map(|left| Timespec::try_from(left).unwrap_or(LONGEST));
    // Not a private one: who wakes is another process, or the kernel. Every error
    // (the value is another, a signal, the time) is for the caller's loop.
    let _ = futex::wait(word, Flags::empty(), value, timeout.as_ref());
}

/// Wakes all who sleep on `word`, in whatever process.
pub(crate) fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, Flags::empty(), i32::MAX.cast_unsigned());
}

const LONGEST: Timespec = Timespec {
    tv_sec: 1_000_000_000,
    tv_nsec: 0,
};
