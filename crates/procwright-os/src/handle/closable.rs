//! A resource that may be closed while operations use it.
//!
//! One word holds a bit, "closed", and the number of operations inside. An operation
//! that finds the bit set does not get in. The resource is dropped by the closer if
//! no operation is inside, else by the last that leaves. So an operation never sees
//! the resource go, nor one that took its place: a descriptor's number is not free
//! while an operation that knows it is inside.
//!
//! The idea is that of Go's `fdMutex` (`internal/poll/fd_mutex.go`), without its
//! queues, which are those of [`interruptible_lock`](super::interruptible_lock).

use std::ops::Deref;

use crate::sync::{AtomicUsize, Ordering, UnsafeCell};

/// The bit of a closed resource; the other bits count the operations inside.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// A resource with its closed bit and its count of operations.
#[derive(Debug)]
pub(crate) struct Closable<R> {
    state: AtomicUsize,
    /// `Some` until closed and left by all.
    resource: UnsafeCell<Option<R>>,
}

// SAFETY: the resource is only looked at through `Entered`, by as many threads as
// there are, so it must be Sync; and it is dropped by any of them, so it must be
// Send. That no look overlaps with the drop is what the state word is for.
unsafe impl<R: Send + Sync> Sync for Closable<R> {}
// SAFETY: as above.
unsafe impl<R: Send> Send for Closable<R> {}

impl<R> Closable<R> {
    pub(crate) fn new(resource: R) -> Closable<R> {
        Closable {
            state: AtomicUsize::new(0),
            resource: UnsafeCell::new(Some(resource)),
        }
    }

    /// Lets an operation in; `None` once closed.
    pub(crate) fn enter(&self) -> Option<Entered<'_, R>> {
        // Relaxed: the exchange below checks what this read.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & CLOSED != 0 {
                return None;
            }
            // No overflow: half the address space of operations cannot be inside, since each
            // has a thread.
            match self.state.compare_exchange_weak(
                state,
                state + 1,
                // Acquire, with the Release that handed this object over: the resource is
                // seen whole.
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Entered(self)),
                Err(now) => state = now,
            }
        }
    }

    /// True if closed.
    pub(crate) fn is_closed(&self) -> bool {
        // SeqCst, for `Handle::sleep`: the sleeper's read of this word must not come
        // before its wake-up is there for the closer to see.
        self.state.load(Ordering::SeqCst) & CLOSED != 0
    }

    /// Closes; false if closed before. Never waits: operations that are inside leave
    /// when they are done.
    pub(crate) fn close(&self) -> bool {
        // SeqCst, as in `is_closed`. The Acquire in it is for the drop: what operations
        // did that have left comes before.
        let before = self.state.fetch_or(CLOSED, Ordering::SeqCst);
        if before == 0 {
            // SAFETY: closed and no operation inside, and this thread has made it so:
            // none gets in any more, and no other thread does this.
            unsafe { self.release() };
        }
        before & CLOSED == 0
    }

    /// Drops the resource.
    ///
    /// # Safety
    /// Called by one thread, once, when no operation is inside and none gets in.
    unsafe fn release(&self) {
        // SAFETY: no other thread reads it, says the contract.
        drop(
            self.resource
                .with_mut(|resource| unsafe { (*resource).take() }),
        );
    }
}

/// An operation that is inside; dropping it leaves.
#[derive(Debug)]
pub(crate) struct Entered<'a, R>(&'a Closable<R>);

impl<R> Deref for Entered<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        // SAFETY: it is not dropped while an operation is inside, and not changed
        // before.
        let resource = self
            .0
            .resource
            .with(|resource| unsafe { (*resource).as_ref() });
        match resource {
            Some(resource) => resource,
            None => unreachable!("the resource went while somebody was inside"),
        }
    }
}

impl<R> Drop for Entered<'_, R> {
    fn drop(&mut self) {
        // Release: what was done inside comes before the drop of the resource, by
        // whichever thread. Acquire: if that is this thread, it sees what others did.
        if self.0.state.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            // SAFETY: closed, and this was the last inside: none gets in any
            // more, and no other thread has brought the count down to zero.
            unsafe { self.0.release() };
        }
    }
}
