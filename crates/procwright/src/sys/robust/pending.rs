//! A wake-up that is not lost with the one who got it.
//!
//! When a holder dies, the kernel wakes one of those who sleep on its word, and that
//! one wakes the others. If it is killed in between, the others would sleep for
//! ever. The kernel has the same trouble with waiters for a lock, and a rule against
//! it: a thread that dies with an operation on a word under way (`list_op_pending` of
//! its robust list), when that word has no holder, makes it wake one more
//! (`handle_futex_death` in kernel/futex/core.c). So whoever sleeps says that it is
//! about to do something with the word.
//!
//! Nothing else can come of it. A word whose holder lives is left alone, unless that
//! has the number of the thread that dies: then the kernel would mark it, in memory
//! that can be written to. Watchers cannot write to the words of others.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering, compiler_fence};

use libc::{c_int, c_long, c_void};

use super::TID;
use crate::sys::known::Known;
use crate::sys::trial;

/// `struct robust_list_head`, of the list that the C library registered.
#[repr(C)]
struct Head {
    _first: AtomicPtr<c_void>,
    offset: c_long,
    pending: AtomicPtr<c_void>,
}

/// An operation of this thread on a word, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pending {
    head: Option<NonNull<Head>>,
    /// It is the thread's own.
    _thread: PhantomData<Cell<()>>,
}

impl Pending {
    /// Does nothing where the thread has no list, or another operation is under way:
    /// that of the code that a signal handler has interrupted.
    pub(crate) fn on(word: &AtomicU32, value: u32) -> Pending {
        Pending {
            head: begin(word, value),
            _thread: PhantomData,
        }
    }
}

fn begin(word: &AtomicU32, value: u32) -> Option<NonNull<Head>> {
    let number = rustix::thread::gettid().as_raw_nonzero().get();
    if value & TID == number.cast_unsigned() {
        // Of a namesake in another pid namespace.
        return None;
    }
    let found = head()?;
    // SAFETY: the kernel would look there when this thread ends, so it is mapped and
    // stays so until then; it is this thread's, and who else writes there is this
    // thread.
    let head = unsafe { found.as_ref() };
    let offset = isize::try_from(head.offset).ok()?;
    let entry = word.as_ptr().cast::<c_void>().wrapping_byte_offset(-offset);
    // An odd one means another kind of lock.
    let fits = !entry.is_null() && entry.addr().is_multiple_of(2);
    let is_free = head.pending.load(Ordering::Relaxed).is_null();
    if !fits || !is_free {
        return None;
    }
    head.pending.store(entry, Ordering::Relaxed);
    // The kernel looks when this thread ends, so the order within it is enough.
    compiler_fence(Ordering::SeqCst);
    Some(found)
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(head) = self.head {
            compiler_fence(Ordering::SeqCst);
            // SAFETY: as in `begin`.
            unsafe { head.as_ref() }
                .pending
                .store(ptr::null_mut(), Ordering::Relaxed);
        }
    }
}

/// Where the list of this thread begins, if it has one that we may know.
fn head() -> Option<NonNull<Head>> {
    if !may_ask() {
        return None;
    }
    let mut head: *mut Head = ptr::null_mut();
    let mut length: usize = 0;
    // SAFETY: writes to the two.
    let result = unsafe { get(&raw mut head, &raw mut length) };
    (result == 0 && length == size_of::<Head>())
        .then(|| NonNull::new(head))
        .flatten()
}

/// # Safety
/// Both can be written to.
unsafe fn get(head: *mut *mut Head, length: *mut usize) -> c_long {
    const THIS_THREAD: c_int = 0;
    // SAFETY: as said above.
    unsafe { libc::syscall(libc::SYS_get_robust_list, THIS_THREAD, head, length) }
}

/// Whether a filter lets us ask. Tried once: filters are never taken off.
pub(super) fn may_ask() -> bool {
    static MAY: Known = Known::new();
    MAY.or_find(|| {
        // SAFETY: one raw call, with pointers to memory of its own.
        let survives = || unsafe {
            trial::survives(|| {
                let (mut head, mut length) = (ptr::null_mut(), 0);
                get(&raw mut head, &raw mut length);
            })
        };
        !trial::is_filtered() || survives()
    })
}
