//! A resource that may be closed while others are at it.
//!
//! One word holds a bit, "closed", and the number of operations inside. Whoever
//! finds the bit set does not get in; whoever leaves last after it was set, or
//! sets it when nobody is inside, drops the resource. So an operation never sees
//! the resource go, and never one that took its place: a descriptor's number is
//! not free while an operation that knows it is inside.
//!
//! The idea is that of Go's `fdMutex` (`internal/poll/fd_mutex.go`), without its
//! queues, which are [`turn`](super::turn)'s.

use std::ops::Deref;

use crate::sync::{AtomicUsize, Ordering, UnsafeCell};

const CLOSED: usize = 1 << (usize::BITS - 1);

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate<R> {
    state: AtomicUsize,
    /// Some until it is closed and empty.
    resource: UnsafeCell<Option<R>>,
}

// SAFETY: the resource is only looked at through `Inside`, by as many threads as
// there are, so it must be Sync; and it is dropped by any of them, so it must be
// Send. That no look overlaps with the drop is what the state word is for.
unsafe impl<R: Send + Sync> Sync for Gate<R> {}
// SAFETY: as above.
unsafe impl<R: Send> Send for Gate<R> {}

impl<R> Gate<R> {
    pub(crate) fn new(resource: R) -> Gate<R> {
        Gate {
            state: AtomicUsize::new(0),
            resource: UnsafeCell::new(Some(resource)),
        }
    }

    /// Lets an operation in, none once it is closed.
    pub(crate) fn enter(&self) -> Option<Inside<'_, R>> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & CLOSED != 0 {
                return None;
            }
            // Half the address space of operations cannot be inside: each has a
            // thread.
            match self.state.compare_exchange_weak(
                state,
                state + 1,
                // Acquire: the resource was made before.
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Inside(self)),
                Err(now) => state = now,
            }
        }
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        // SeqCst, see `Handle::sleep`: the sleeper's look at this word must not
        // come before its wake-up is there for the closer to see.
        self.state.load(Ordering::SeqCst) & CLOSED != 0
    }

    /// Closes it; false if it was closed before. Never waits: what is inside
    /// leaves when it does.
    pub(crate) fn close(&self) -> bool {
        let before = self.state.fetch_or(CLOSED, Ordering::SeqCst);
        if before == 0 {
            // SAFETY: closed and nobody inside, and this thread has made it so:
            // nobody gets in any more, and no other does this.
            unsafe { self.release() };
        }
        before & CLOSED == 0
    }

    /// # Safety
    /// By one thread, once, when nobody is inside and nobody gets in.
    unsafe fn release(&self) {
        // SAFETY: nobody else looks, says the contract.
        drop(
            self.resource
                .with_mut(|resource| unsafe { (*resource).take() }),
        );
    }
}

/// An operation that is inside.
#[derive(Debug)]
pub(crate) struct Inside<'a, R>(&'a Gate<R>);

impl<R> Deref for Inside<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        // SAFETY: it is not dropped while somebody is inside, and nobody changes
        // it before.
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

impl<R> Drop for Inside<'_, R> {
    fn drop(&mut self) {
        // AcqRel: what was done inside comes before the drop, whoever does that.
        if self.0.state.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            // SAFETY: closed, and this was the last inside: nobody gets in any
            // more, and no other thread has brought the count down to nobody.
            unsafe { self.0.release() };
        }
    }
}
