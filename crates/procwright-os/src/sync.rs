//! Mutex and condition variable that no panic poisons, and the façade that lets loom
//! take the place of `std`:
//! `RUSTFLAGS="--cfg procwright_loom" cargo test --lib loom_`.
//!
//! The switch is not `cfg(loom)`, to which other crates listen as well.

use std::sync::PoisonError;
use std::time::Duration;

#[cfg(procwright_loom)]
pub(crate) use loom::cell::UnsafeCell;
#[cfg(procwright_loom)]
use loom::sync as imp;
#[cfg(procwright_loom)]
pub use loom::{
    sync::MutexGuard,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence},
};
#[cfg(not(procwright_loom))]
use std::sync as imp;
#[cfg(not(procwright_loom))]
pub use std::sync::{
    MutexGuard,
    atomic::{AtomicU32, AtomicUsize, Ordering, fence},
};

/// A mutex that a panic does not poison.
///
/// Every critical section leaves its data consistent at each point where it can
/// panic, so a panic elsewhere must not take a run, a queue or an end of a stream
/// with it.
///
/// `parking_lot` is no option: its locks wait in one table for the whole process, and a fork
/// while another thread is in that table leaves the table locked in the fork.
#[derive(Debug, Default)]
pub struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    /// A mutex around `value`.
    #[cfg(not(procwright_loom))]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    /// A mutex around `value`.
    #[cfg(procwright_loom)]
    pub fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    /// Waits for the mutex and takes it.
    #[doc(alias = "pthread_mutex_lock")]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the mutex if that needs no wait.
    #[cfg(not(procwright_loom))]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(imp::TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(imp::TryLockError::WouldBlock) => None,
        }
    }

    /// The value, without locking: the caller has the only reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, without its mutex.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Mutex<Option<T>> {
    /// Takes the value out, and leaves none.
    pub fn take(&self) -> Option<T> {
        self.lock().take()
    }
}

/// A condition variable for a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(imp::Condvar);

impl Condvar {
    /// A condition that no thread waits for.
    #[cfg(not(procwright_loom))]
    pub const fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    /// A condition that no thread waits for.
    #[cfg(procwright_loom)]
    pub fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    /// Lets go of the mutex, sleeps until notified or for no reason, and takes the
    /// mutex again.
    #[doc(alias = "pthread_cond_wait")]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps as [`Condvar::wait`] does, for `timeout` at most. The second value
    /// tells whether the time ran out.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let waited = self.0.wait_timeout(guard, timeout);
        let (guard, result) = waited.unwrap_or_else(PoisonError::into_inner);
        (guard, result.timed_out())
    }

    /// Wakes one thread that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// The cell of `std` with loom's interface, so that loom sees each access. Callers keep
/// writers and readers apart.
#[cfg(not(procwright_loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(procwright_loom))]
impl<T> UnsafeCell<T> {
    /// A cell around `value`.
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Calls `look` with a pointer to read through, valid for the call.
    pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    /// Calls `change` with a pointer to write through, valid for the call.
    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}
