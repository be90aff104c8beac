//! Sleeping on words, and waking those who do.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::time::{ClockId, Timespec};

use super::TID;
use super::pending::Pending;
use crate::sys::trial;
use crate::time::Deadline;

/// Those of [`sleep_alone`] have a bit of their own, so that they can be woken
/// without the others.
const ALONE: NonZeroU32 = NonZeroU32::MIN;
const OTHERS: NonZeroU32 = match NonZeroU32::new(!ALONE.get()) {
    Some(others) => others,
    None => NonZeroU32::MAX,
};

/// Sleeps until somebody wakes the sleepers on `word` or the deadline comes, if it
/// still is `value` when the kernel looks. May return for nothing. If the word has
/// no holder then, the others who sleep on it have been woken.
pub(crate) fn sleep(word: &AtomicU32, value: u32, deadline: Deadline) {
    sleep_as(OTHERS, word, value, deadline);
}

/// The same until [`wake_alone`].
pub(crate) fn sleep_alone(word: &AtomicU32, value: u32) {
    sleep_as(ALONE, word, value, Deadline::NEVER);
}

fn sleep_as(who: NonZeroU32, word: &AtomicU32, value: u32, deadline: Deadline) {
    let timeout = until(deadline);
    // From here until the others are awake: if we are killed in between, the kernel
    // wakes one of them.
    let _pending = Pending::on(word, value);
    // Not a private one: who wakes is another process, or the kernel. Every error
    // (the value is another, a signal, the time) is for the caller's loop.
    let _ = futex::wait_bitset(word, Flags::empty(), value, timeout.as_ref(), who);
    if word.load(Ordering::Acquire) & TID == 0 {
        wake(word);
    }
}

/// Wakes all who sleep on `word`, in whatever process.
pub(crate) fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, Flags::empty(), i32::MAX.cast_unsigned());
}

/// Wakes those of [`sleep_alone`], in whatever process.
pub(crate) fn wake_alone(word: &AtomicU32) {
    let all = i32::MAX.cast_unsigned();
    let _ = futex::wake_bitset(word, Flags::empty(), all, ALONE);
}

/// A deadline as the clock of sleeps counts.
pub(crate) fn until(deadline: Deadline) -> Option<Timespec> {
    const LONGEST: Timespec = Timespec {
        tv_sec: 1_000_000_000_000,
        tv_nsec: 0,
    };
    let left = deadline.remaining(Instant::now())?;
    let left = Timespec::try_from(left).unwrap_or(LONGEST);
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    Some(now.checked_add(left).unwrap_or(LONGEST))
}

/// How many words a thread can sleep on at a time (`FUTEX_WAITV_MAX`).
pub(crate) const MANY: usize = 128;

/// Sleeps until somebody wakes the sleepers on one of the words, if each still has
/// its value when the kernel looks. At most [`MANY`]. May return for nothing.
///
/// # Errors
/// Where that cannot be done: Linux before 5.16, a sandbox.
pub(crate) fn sleep_on_many(words: &[(&AtomicU32, u32)]) -> Result<(), Errno> {
    let words: Vec<Wait> = words
        .iter()
        .map(|(word, value)| wait(word, *value))
        .collect();
    match futex::waitv(&words, WaitvFlags::empty(), None, ClockId::Monotonic) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
        Err(error) => Err(error),
    }
}

fn wait(word: &AtomicU32, value: u32) -> Wait {
    let mut wait = Wait::new();
    wait.uaddr = WaitPtr::new(word.as_ptr().cast());
    wait.val = u64::from(value);
    wait.flags = WaitFlags::SIZE_U32;
    wait
}

/// Whether [`sleep_on_many`] can be had. Tried each time: it is asked for rarely.
pub(crate) fn may_sleep_on_many() -> bool {
    let word = AtomicU32::new(0);
    let tries = || sleep_on_many(&[(&word, 1)]).is_ok();
    // SAFETY: one raw call, with a pointer to memory of its own.
    let survives = || unsafe {
        trial::survives(|| {
            let wait = wait(&word, 1);
            let null = std::ptr::null::<libc::timespec>();
            libc::syscall(libc::SYS_futex_waitv, &raw const wait, 1, 0, null, 0);
        })
    };
    (!trial::is_filtered() || survives()) && tries()
}
