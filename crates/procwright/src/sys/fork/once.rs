//! Values that are made once, without a lock that a fork could inherit held.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that the first who has made one puts here, for all.
///
/// The standard library's `OnceLock` lets the others wait while one is at it. A fork
/// at that moment would wait for ever: it has not the thread that it waits for.
pub(crate) struct Once<T>(AtomicPtr<T>, PhantomData<Box<T>>);

impl<T: Send + Sync> Once<T> {
    pub(crate) const fn new() -> Once<T> {
        Once(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: null, or one that was put there below, whole before it could be
        // seen; it is only shared, and freed with `self`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// What is there then. If another was first, this one is dropped.
    pub(crate) fn put(&self, value: T) -> &T {
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

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: it comes from a box, and nobody shares it any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_first_is_there_for_all_and_goes_with_it() {
        let all: Vec<_> = (0..8).map(Arc::new).collect();
        let once = Once::new();
        assert!(once.get().is_none());
        std::thread::scope(|scope| {
            for one in &all {
                scope.spawn(|| once.put(Arc::clone(one)));
            }
        });
        let there = Arc::clone(once.get().unwrap());
        assert_eq!(Arc::strong_count(&there), 3);
        drop(once);
        assert!(all.iter().all(|one| Arc::strong_count(one) <= 2));
        assert_eq!(Arc::strong_count(&there), 2);
    }
}
