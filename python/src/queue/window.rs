//! Memory of a queue that objects of Python's look into.
//!
//! Every memoryview of it keeps the object alive that it is of, and is counted, and
//! that object keeps the end: as long as anybody can get at the memory, it is not given
//! back, and is not used for anything else. To give it back before is refused.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use procwright::queue::Error;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyWeakrefReference};
use pyo3::{PyClass, ffi};

use super::errors::{Side, failed};

/// A loan, and how many look into it.
pub(super) struct Window<L> {
    /// Locked with the interpreter lock held and for a moment only.
    state: Mutex<State<L>>,
    side: Side,
}

struct State<L> {
    loan: Option<L>,
    exports: usize,
    /// The memoryview of the `with` block, not kept alive: it keeps us.
    entered: Option<Py<PyWeakrefReference>>,
}

/// Memory that is lent.
pub(super) trait Memory {
    /// Where it is: it stays there, and nobody but those who look into the window uses
    /// it, until the loan is dropped. Not in a fork.
    fn area(&mut self) -> NonNull<[u8]>;
    /// Whether this is a fork of the process that has it.
    fn is_inherited(&self) -> bool;
}

impl<L: Memory> Window<L> {
    pub(super) fn on(loan: L, side: Side) -> Window<L> {
        Window {
            state: Mutex::new(State {
                loan: Some(loan),
                exports: 0,
                entered: None,
            }),
            side,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<L>> {
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
        match loan.is_inherited() {
            false => Ok(loan.area().len()),
            true => {
                // Not under the lock: that runs code of Python's.
                drop(state);
                Err(failed(py, &Error::Forked, self.side))
            }
        }
    }

    /// The memoryview of a `with` block.
    pub(super) fn enter<'py, T: PyClass>(
        &self,
        owner: &Bound<'py, T>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let view = PyMemoryView::from(owner.as_any())?;
        self.lock().entered = Some(PyWeakrefReference::new(&view)?.unbind());
        Ok(view)
    }

    /// Takes the loan, if nobody looks into it any more. None if it was taken before.
    ///
    /// # Errors
    /// `BufferError` if somebody does.
    pub(super) fn take(&self, py: Python<'_>) -> PyResult<Option<L>> {
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
    pub(super) unsafe fn export<T: PyClass>(
        &self,
        owner: &Bound<'_, T>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let mut state = self.lock();
        let loan = state.loan.as_mut().ok_or_else(over)?;
        if loan.is_inherited() {
            drop(state);
            return Err(failed(owner.py(), &Error::Forked, self.side));
        }
        let area = loan.area();
        let readonly = c_int::from(self.side == Side::Receiver);
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

fn over() -> PyErr {
    PyValueError::new_err("this message's memory was given back")
}
