//! What a call has met behind what it gives back, for the next one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

/// Of damage the core tells once, and what cannot be unpickled is received: neither would
/// be told of again by itself.
#[derive(Default)]
pub(super) struct Later {
    /// Whether there is any, for who receives: that is to cost no lock.
    is_some: AtomicBool,
    /// Locked with the interpreter lock held and for a moment only.
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Objects that were received by a call that could not give them back.
    objects: VecDeque<Py<PyAny>>,
    /// Not a `PyErr`, in which the collector of garbage finds nothing.
    error: Option<Py<PyBaseException>>,
}

impl Later {
    pub(super) fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Relaxed)
    }

    /// Changes what is kept.
    fn change<R>(&self, change: impl FnOnce(&mut Kept) -> R) -> R {
        let mut kept = self.lock();
        let result = change(&mut kept);
        let is_some = kept.error.is_some() || !kept.objects.is_empty();
        self.is_some.store(is_some, Ordering::Relaxed);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next one to receive is told that.
    pub(super) fn put_off(&self, py: Python<'_>, error: PyErr) {
        let error = error.into_value(py);
        drop(self.change(|kept| kept.error.replace(error)));
    }

    /// The next one to receive objects has those first.
    pub(super) fn keep(&self, objects: Vec<Py<PyAny>>) {
        self.change(|kept| kept.objects.extend(objects));
    }

    /// # Errors
    /// What was put off.
    pub(super) fn tell(&self, py: Python<'_>) -> PyResult<()> {
        let error = self.change(|kept| kept.error.take());
        match error {
            Some(error) => Err(PyErr::from_value(error.into_bound(py).into_any())),
            None => Ok(()),
        }
    }

    /// The next object that was kept.
    pub(super) fn object(&self) -> Option<Py<PyAny>> {
        self.change(|kept| kept.objects.pop_front())
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let kept = self.lock();
        visit.call(&kept.error)?;
        kept.objects
            .iter()
            .try_for_each(|object| visit.call(object))
    }

    pub(super) fn clear(&self) {
        drop(self.change(std::mem::take));
    }
}
