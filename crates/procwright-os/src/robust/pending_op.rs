//! A wake-up that is not lost with the sleeper that got it.
//!
//! # The race with a kill
//!
//! 1. A holder dies. The kernel marks its word and wakes one of the sleepers.
//! 2. That one is to wake the others.
//! 3. It is killed in between: the others would sleep for ever.
//!
//! The kernel has the same trouble with waiters for a lock, and a rule against it: a
//! thread that dies with an operation on a word under way (`list_op_pending` of its
//! robust list), when that word has no holder, makes it wake one more
//! (`handle_futex_death` in kernel/futex/core.c). So a sleeper declares before its
//! sleep that it is about to do something with the word.
//!
//! Nothing else can come of it. A word whose holder lives is left alone, unless that
//! has the number of the thread that dies: then the kernel would mark it, in memory
//! that can be written to. Watchers cannot write to the words of others.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use libc::{c_int, c_long};

use super::TID_MASK;
use super::list::{RobustLink, RobustListHead};
use crate::fork::OnceBool;
use crate::seccomp;

/// An operation of this thread on a word, under way until this is dropped.
#[doc(alias = "list_op_pending")]
#[derive(Debug)]
pub struct PendingOp {
    head: Option<NonNull<RobustListHead>>,
    /// Marker: the list is the thread's own.
    _thread: PhantomData<Cell<()>>,
}

impl PendingOp {
    /// Declares an operation on `word`, which has `value`. Does nothing where the thread
    /// has no list, or another operation is under way: that of the code that a signal
    /// handler has interrupted.
    pub fn on(word: &AtomicU32, value: u32) -> PendingOp {
        PendingOp {
            head: begin(word, value),
            _thread: PhantomData,
        }
    }
}

fn begin(word: &AtomicU32, value: u32) -> Option<NonNull<RobustListHead>> {
    let number = rustix::thread::gettid().as_raw_nonzero().get();
    if value & TID_MASK == number.cast_unsigned() {
        // The holder is a namesake in another pid namespace.
        return None;
    }
    let found = head()?;
    // SAFETY: the kernel would look there when this thread ends, so it is mapped and
    // stays so until then; this thread alone writes there.
    let head = unsafe { found.as_ref() };
    let offset = isize::try_from(head.offset).ok()?;
    let entry = word
        .as_ptr()
        .cast::<RobustLink>()
        .wrapping_byte_offset(-offset);
    // An odd address means another kind of lock.
    let fits = !entry.is_null() && entry.addr().is_multiple_of(2);
    // Relaxed, here and below: only this thread writes there, and the kernel reads when
    // the thread has ended.
    let is_free = head.pending.load(Ordering::Relaxed).is_null();
    if !fits || !is_free {
        return None;
    }
    head.pending.store(entry, Ordering::Relaxed);
    // The kernel looks when this thread ends, so the order within the thread is enough.
    compiler_fence(Ordering::SeqCst);
    Some(found)
}

impl Drop for PendingOp {
    fn drop(&mut self) {
        if let Some(head) = self.head {
            // The others were woken before: the compiler must not move that behind the store.
            compiler_fence(Ordering::SeqCst);
            // SAFETY: as in `begin`.
            unsafe { head.as_ref() }
                .pending
                .store(ptr::null_mut(), Ordering::Relaxed);
        }
    }
}

/// The head of this thread's list, if it has one and may ask for it.
fn head() -> Option<NonNull<RobustListHead>> {
    if !may_get_robust_list() {
        return None;
    }
    let mut head: *mut RobustListHead = ptr::null_mut();
    let mut length: usize = 0;
    // SAFETY: writes to the two.
    let result = unsafe { get(&raw mut head, &raw mut length) };
    (result == 0 && length == size_of::<RobustListHead>())
        .then(|| NonNull::new(head))
        .flatten()
}

/// `get_robust_list(2)` of the calling thread.
///
/// # Safety
/// Both can be written to.
unsafe fn get(head: *mut *mut RobustListHead, length: *mut usize) -> c_long {
    const THIS_THREAD: c_int = 0;
    // SAFETY: as said above.
    unsafe { libc::syscall(libc::SYS_get_robust_list, THIS_THREAD, head, length) }
}

/// True if a seccomp filter lets us ask. Tried once: filters are never taken off.
pub(super) fn may_get_robust_list() -> bool {
    static MAY: OnceBool = OnceBool::new();
    let may = MAY.get_or_try_init(|| {
        // SAFETY: one raw call, with pointers to memory of its own.
        let survives = || unsafe {
            seccomp::survives(|| {
                let (mut head, mut length) = (ptr::null_mut(), 0);
                get(&raw mut head, &raw mut length);
            })
        };
        match seccomp::is_filtered() {
            true => survives().ok_or(()),
            false => Ok(true),
        }
    });
    may.unwrap_or(false)
}
