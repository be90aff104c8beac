//! Errors and objects that a call has met behind what it gives back, for the next call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use procwright_os::sync::Mutex;

/// An error or objects for the next call that receives.
///
/// The core tells of damage once, and an object that cannot be unpickled is received:
/// neither would come again by itself.
#[derive(Default)]
pub(super) struct Deferred {
    /// True if there is anything. A call that receives takes no lock to learn that.
    ///
    /// Relaxed: it says only whether to look at `items`, which are seen under their lock. A
    /// call loads it with the interpreter lock, which the storing thread had, too; a wait
    /// that loads it without is woken after the store.
    is_some: AtomicBool,
    /// Locked with the interpreter lock held and for a moment only.
    items: Mutex<DeferredItems>,
}

#[derive(Default)]
struct DeferredItems {
    /// Objects that were received by a call that could not give them back.
    objects: VecDeque<Py<PyAny>>,
    /// An exception, and no `PyErr`, into which the garbage collector cannot look.
    error: Option<Py<PyBaseException>>,
}

impl Deferred {
    pub(super) fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Relaxed)
    }

    fn change<R>(&self, change: impl FnOnce(&mut DeferredItems) -> R) -> R {
        let mut items = self.items.lock();
        let result = change(&mut items);
        let is_some = items.error.is_some() || !items.objects.is_empty();
        self.is_some.store(is_some, Ordering::Relaxed);
        result
    }

    pub(super) fn defer_error(&self, py: Python<'_>, error: PyErr) {
        let error = error.into_value(py);
        drop(self.change(|items| items.error.replace(error)));
    }

    pub(super) fn defer_objects(&self, objects: Vec<Py<PyAny>>) {
        self.change(|items| items.objects.extend(objects));
    }

    /// # Errors
    /// What was deferred.
    pub(super) fn raise(&self, py: Python<'_>) -> PyResult<()> {
        let error = self.change(|items| items.error.take());
        match error {
            Some(error) => Err(PyErr::from_value(error.into_bound(py).into_any())),
            None => Ok(()),
        }
    }

    /// The next object that was deferred.
    pub(super) fn object(&self) -> Option<Py<PyAny>> {
        self.change(|items| items.objects.pop_front())
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let items = self.items.lock();
        visit.call(&items.error)?;
        items
            .objects
            .iter()
            .try_for_each(|object| visit.call(object))
    }

    pub(super) fn clear(&self) {
        drop(self.change(std::mem::take));
    }
}
