//! Memory of a queue that objects of Python's look into.
//!
//! Every memoryview of it keeps the object alive that it is of, and is counted, and
//! that object keeps the end: as long as anybody can get at the memory, it is not given
//! back, and is not used for anything else. To give it back before is refused.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use procwright::queue::Error;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyWeakrefReference};
use pyo3::{PyClass, ffi};

use super::errors::{Side, failed};
use super::loan::{Kept, Lends};

/// A loan, and how many look into it.
pub(super) struct Window<T: Lends> {
    /// Locked with the interpreter lock held and for a moment only.
    state: Mutex<State<T>>,
}

struct State<T: Lends> {
    loan: Option<Kept<T>>,
    exports: usize,
    /// The memoryview of the `with` block, not kept alive: it keeps us.
    entered: Option<Py<PyWeakrefReference>>,
}

impl<T: Lends> Window<T> {
    /// One with nothing behind it yet.
    pub(super) fn new() -> Window<T> {
        Window {
            state: Mutex::new(State {
                loan: None,
                exports: 0,
                entered: None,
            }),
        }
    }

    /// From now on whoever wants the end is told where it is.
    pub(super) fn open(&self, loan: Kept<T>) {
        loan.of.end().lent();
        self.lock().loan = Some(loan);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().loan.is_some()
    }

    /// # Errors
    /// If it was given back, and in a fork.
    pub(super) fn len(&self, py: Python<'_>) -> PyResult<usize> {
        let mut state = self.lock();
        let loan = state.loan.as_mut().ok_or_else(over)?;
        match loan.of.end().is_inherited() {
            false => Ok(T::area(&mut loan.lent).len()),
            true => {
                // Not under the lock: that runs code of Python's.
                drop(state);
                Err(failed(py, &Error::Forked, T::SIDE))
            }
        }
    }

    /// The memoryview of a `with` block.
    pub(super) fn enter<'py, O: PyClass>(
        &self,
        owner: &Bound<'py, O>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let view = PyMemoryView::from(owner.as_any())?;
        self.lock().entered = Some(PyWeakrefReference::new(&view)?.unbind());
        Ok(view)
    }

    /// Takes the loan, if nobody looks into it any more. None if it was taken before.
    ///
    /// # Errors
    /// `BufferError` if somebody does.
    pub(super) fn take(&self, py: Python<'_>) -> PyResult<Option<Kept<T>>> {
        let entered = self.lock().entered.take();
        if let Some(reference) = entered
            && let Some(view) = reference.bind(py).upgrade()
            && view.call_method0("release").is_err()
        {
            // Somebody has a buffer of it. To be tried again.
            self.lock().entered = Some(reference);
        }
        let mut state = self.lock();
        match state.exports {
            0 => Ok(state.loan.take()),
            _ => Err(PyBufferError::new_err(
                "something still uses the memory of this message, such as a slice of its \
                 memoryview or an array on it: let go of that first, or make a copy of it",
            )),
        }
    }

    /// # Safety
    /// As a `bf_getbuffer` of the owner.
    pub(super) unsafe fn export<O: PyClass>(
        &self,
        owner: &Bound<'_, O>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let mut state = self.lock();
        let loan = state.loan.as_mut().ok_or_else(over)?;
        if loan.of.end().is_inherited() {
            drop(state);
            return Err(failed(owner.py(), &Error::Forked, T::SIDE));
        }
        let area = T::area(&mut loan.lent);
        let readonly = c_int::from(T::SIDE == Side::Receiver);
        // SAFETY: says the caller; the memory is there until the loan is dropped, which
        // is not before `exports` is 0 again, and not before the owner is, of which the
        // buffer has a reference. What is lent for writing is nobody else's to look at.
        let done = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                owner.as_ptr(),
                area.cast().as_ptr(),
                area.len() as ffi::Py_ssize_t,
                readonly,
                flags,
            )
        };
        if done != 0 {
            return Err(PyErr::fetch(owner.py()));
        }
        state.exports += 1;
        Ok(())
    }

    /// A buffer of it was let go.
    pub(super) fn release(&self) {
        self.lock().exports -= 1;
    }
}

pub(super) fn over() -> PyErr {
    PyValueError::new_err("this message's memory was given back")
}
