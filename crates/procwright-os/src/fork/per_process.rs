//! Values that each process has of its own, forks included.

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::ForkId;

/// A value of the calling process, made on first use.
///
/// Meant for what our threads work with. A fork has none of the threads, but their
/// data as they were then: a lock that one of them held stays held for ever. So a
/// fork gets a new value and never reads the old one, which is leaked: to drop it
/// would be to read it.
#[doc(alias = "pthread_atfork")]
pub struct PerProcess<T>(AtomicPtr<Slot<T>>);

struct Slot<T> {
    process: ForkId,
    value: T,
}

impl<T: Default + Send + Sync + 'static> PerProcess<T> {
    /// A value that is made later, in each process that asks.
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value of the calling process.
    pub fn get(&self) -> &'static T {
        let process = ForkId::current();
        loop {
            // Acquire, with the Release of the exchange: the slot is seen whole.
            let found = self.0.load(Ordering::Acquire);
            // SAFETY: null, or one that was put there below, whole before it
            // could be seen; from then on it is only shared, and never freed.
            match unsafe { found.as_ref::<'static>() } {
                Some(slot) if slot.process == process => return &slot.value,
                _ => {}
            }
            let value = T::default();
            let new = Box::into_raw(Box::new(Slot { process, value }));
            let put = self
                .0
                .compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire);
            if put.is_err() {
                // Another thread was first.
                //
                // SAFETY: it comes from a box, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }
}

impl<T: Default + Send + Sync + 'static> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PerProcess")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn all_threads_have_the_same() {
        static ONE: PerProcess<Mutex<u32>> = PerProcess::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| *ONE.get().lock().unwrap() += 1);
            }
        });
        assert_eq!(*ONE.get().lock().unwrap(), 8);
    }
}
