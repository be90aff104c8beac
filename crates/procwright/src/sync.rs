//! The façade for everything that threads share without a system call, so that
//! loom can take its place: `RUSTFLAGS="--cfg procwright_loom" cargo test --lib loom_`.
//! Not `cfg(loom)`, which other crates take for a word to them.

#[cfg(procwright_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
};
#[cfg(not(procwright_loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
};

/// `std`'s cell with loom's interface.
#[cfg(not(procwright_loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(procwright_loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}
