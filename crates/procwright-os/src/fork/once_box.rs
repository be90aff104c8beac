//! Values that are made once, without a lock that a fork could inherit held: the
//! `race::OnceBox` of the once_cell crate.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that the first thread to have made one puts here, for all.
///
/// The standard library's `OnceLock` lets the others wait while one thread makes the
/// value. A fork at that moment would wait for ever, for a thread that it does not
/// have.
#[doc(alias = "OnceLock")]
pub struct OnceBox<T>(AtomicPtr<T>, PhantomData<Box<T>>);

impl<T: Send + Sync> OnceBox<T> {
    /// An empty cell.
    pub const fn new() -> OnceBox<T> {
        OnceBox(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        // Acquire, with the Release of `get_or_insert`: the value is seen whole.
        // SAFETY: null, or one that was put there below, whole before it could be
        // seen; it is only shared, and freed with `self`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The value, made now if there is none. Threads that come at once may each make one,
    /// of which one is used.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.get_or_insert(make()),
        }
    }

    /// The value that is there then: `value`, or that of a thread that was first.
    pub fn get_or_insert(&self, value: T) -> &T {
        // AcqRel: Release for `get` of others, Acquire to see a value that was first.
        let new = Box::into_raw(Box::new(value));
        let put =
            self.0
                .compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        match put {
            // SAFETY: it comes from a box, and is freed with `self`.
            Ok(_) => unsafe { &*new },
            Err(first) => {
                // SAFETY: it comes from a box, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: as in `get`.
                unsafe { &*first }
            }
        }
    }
}

impl<T: Send + Sync> Default for OnceBox<T> {
    fn default() -> OnceBox<T> {
        OnceBox::new()
    }
}

impl<T: Clone + Send + Sync> Clone for OnceBox<T> {
    fn clone(&self) -> OnceBox<T> {
        let copy = OnceBox::new();
        if let Some(value) = self.get() {
            copy.get_or_insert(value.clone());
        }
        copy
    }
}

impl<T> Drop for OnceBox<T> {
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: it comes from a box, and nobody shares it any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> fmt::Debug for OnceBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnceBox")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn who_is_slow_keeps_nobody_waiting() {
        let once = OnceBox::new();
        let (go_on, may_go_on) = std::sync::mpsc::channel();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let once = &once;
            let slow = scope.spawn(move || {
                *once.get_or_init(|| {
                    tell.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    1
                })
            });
            told.recv().unwrap();
            // As a fork does now, in which the slow one will never be done.
            assert_eq!(*once.get_or_init(|| 2), 2);
            go_on.send(()).unwrap();
            assert_eq!(slow.join().unwrap(), 2);
        });
    }

    #[test]
    fn the_first_is_there_for_all_and_goes_with_it() {
        let all: Vec<_> = (0..8).map(Arc::new).collect();
        let once = OnceBox::new();
        assert!(once.get().is_none());
        std::thread::scope(|scope| {
            for one in &all {
                scope.spawn(|| once.get_or_insert(Arc::clone(one)));
            }
        });
        let there = Arc::clone(once.get().unwrap());
        assert_eq!(Arc::strong_count(&there), 3);
        drop(once);
        assert!(all.iter().all(|one| Arc::strong_count(one) <= 2));
        assert_eq!(Arc::strong_count(&there), 2);
    }
}
