//! Sleeping on words, and waking the sleepers: futexes between processes.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Wait, WaitvFlags};
use rustix::time::ClockId;

use super::TID_MASK;
use super::pending_op::PendingOp;
use crate::futex::{monotonic, waiter};
use crate::seccomp;
use crate::time::Deadline;

/// Bit of the sleepers of [`sleep_alone`], so that they can be woken without the
/// others.
const ALONE: NonZeroU32 = NonZeroU32::MIN;
const OTHERS: NonZeroU32 = match NonZeroU32::new(!ALONE.get()) {
    Some(others) => others,
    None => NonZeroU32::MAX,
};

/// Sleeps until another thread wakes the sleepers on `word` or the deadline comes, if
/// it still is `value` when the kernel looks. May return for nothing. If the word has
/// no holder then, the others who sleep on it have been woken.
#[doc(alias = "futex")]
#[doc(alias = "FUTEX_WAIT_BITSET")]
pub fn sleep(word: &AtomicU32, value: u32, deadline: Deadline) {
    sleep_as(OTHERS, word, value, deadline);
}

/// Sleeps until [`wake_alone`] wakes the sleepers on `word`, for a sleeper that a
/// thread ends which cannot change the word.
#[doc(alias = "FUTEX_WAIT_BITSET")]
pub fn sleep_alone(word: &AtomicU32, value: u32) {
    sleep_as(ALONE, word, value, Deadline::NEVER);
}

fn sleep_as(who: NonZeroU32, word: &AtomicU32, value: u32, deadline: Deadline) {
    let timeout = monotonic(deadline);
    // Lives until the others are awake: if we are killed before, the kernel wakes one of
    // them.
    let _pending = PendingOp::on(word, value);
    // The futex is not private: another process wakes us, or the kernel. Every error (the
    // value is another, a signal, the time) is for the caller's loop.
    let _ = futex::wait_bitset(word, Flags::empty(), value, timeout.as_ref(), who);
    // Acquire: what the holder wrote before its end is seen after it.
    if word.load(Ordering::Acquire) & TID_MASK == 0 {
        wake(word);
    }
}

/// Wakes all who sleep on `word`, in whatever process.
#[doc(alias = "FUTEX_WAKE")]
pub fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, Flags::empty(), i32::MAX.cast_unsigned());
}

/// Wakes the sleepers of [`sleep_alone`], in whatever process.
#[doc(alias = "FUTEX_WAKE_BITSET")]
pub fn wake_alone(word: &AtomicU32) {
    let all = i32::MAX.cast_unsigned();
    let _ = futex::wake_bitset(word, Flags::empty(), all, ALONE);
}

/// The most words that a thread can sleep on at a time.
#[doc(alias = "FUTEX_WAITV_MAX")]
pub const MANY: usize = 128;

/// Sleeps until another thread wakes the sleepers on one of the words, if each still
/// has its value when the kernel looks. At most [`MANY`] words. May return for nothing.
/// Others who sleep there are not woken.
///
/// # Errors
/// `ENOSYS` before Linux 5.16; in a sandbox.
#[doc(alias = "futex_waitv")]
pub fn sleep_on_many(words: &[(&AtomicU32, u32)]) -> Result<(), Errno> {
    let words: Vec<Wait> = words
        .iter()
        .map(|(word, value)| waiter(word, *value))
        .collect();
    match futex::waitv(&words, WaitvFlags::empty(), None, ClockId::Monotonic) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// True if [`sleep_on_many`] works. Tried each time: this is asked rarely.
pub fn may_sleep_on_many() -> bool {
    let word = AtomicU32::new(0);
    let tries = || sleep_on_many(&[(&word, 1)]).is_ok();
    // SAFETY: one raw call, with a pointer to memory of its own.
    let survives = || unsafe {
        seccomp::survives(|| {
            let wait = waiter(&word, 1);
            let null = std::ptr::null::<libc::timespec>();
            libc::syscall(libc::SYS_futex_waitv, &raw const wait, 1, 0, null, 0);
        })
    };
    (!seccomp::is_filtered() || survives() == Some(true)) && tries()
}
