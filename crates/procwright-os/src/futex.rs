//! Helpers of all sleeps on futexes: the deadline, and a word among several.

use std::sync::atomic::AtomicU32;
use std::time::Instant;

use rustix::thread::futex::{Wait, WaitFlags, WaitPtr};
use rustix::time::{ClockId, Timespec};

use crate::time::Deadline;

/// A deadline on the monotonic clock, as futexes count.
pub(crate) fn monotonic(deadline: Deadline) -> Option<Timespec> {
    const LONGEST: Timespec = Timespec {
        tv_sec: 1_000_000_000_000,
        tv_nsec: 0,
    };
    let left = deadline.remaining(Instant::now())?;
    let left = Timespec::try_from(left).unwrap_or(LONGEST);
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    Some(now.checked_add(left).unwrap_or(LONGEST))
}

/// A word among those of `futex_waitv(2)`, shared with other processes.
pub(crate) fn waiter(word: &AtomicU32, value: u32) -> Wait {
    let mut wait = Wait::new();
    wait.uaddr = WaitPtr::new(word.as_ptr().cast());
    wait.val = u64::from(value);
    wait.flags = WaitFlags::SIZE_U32;
    wait
}
