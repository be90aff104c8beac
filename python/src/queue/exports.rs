//! The memory of a message in place, as objects of Python's see it.
//!
//! Each memoryview of it is counted, and keeps the `View` or `Reservation` alive, which keeps
//! the end. So as long as code can get at the memory, it is not used for anything else, and
//! to give it back is refused.
#![allow(unsafe_code)]

use std::ffi::c_int;

use procwright::queue::Error;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyWeakrefReference};
use pyo3::{PyClass, ffi};

use super::errors::{QueueSide, queue_error};
use super::guard::OwnedInPlace;
use super::lends::LendsMemory;
use procwright_os::sync::Mutex;

/// A message in place, and the number of buffers of it.
pub(super) struct Exports<T: LendsMemory> {
    /// Locked with the interpreter lock held and for a moment only.
    state: Mutex<ExportsState<T>>,
}

struct ExportsState<T: LendsMemory> {
    /// The message, None once it was given back.
    message: Option<OwnedInPlace<T>>,
    count: usize,
    /// The memoryview of the `with` block. A weak reference, as the memoryview keeps the
    /// owner of this alive.
    entered: Option<Py<PyWeakrefReference>>,
}

impl<T: LendsMemory> Exports<T> {
    /// Exports of no message yet.
    pub(super) fn new() -> Exports<T> {
        Exports {
            state: Mutex::new(ExportsState {
                message: None,
                count: 0,
                entered: None,
            }),
        }
    }

    /// Sets the message. Calls that want its end are told from now on that it is lent.
    pub(super) fn open(&self, message: OwnedInPlace<T>) {
        message.guard.endpoint().mark_lent();
        self.state.lock().message = Some(message);
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.lock().message.is_some()
    }

    /// # Errors
    /// If it was given back, and in a fork.
    pub(super) fn len(&self, py: Python<'_>) -> PyResult<usize> {
        let mut state = self.state.lock();
        let message = state.message.as_mut().ok_or_else(given_back)?;
        match message.guard.endpoint().is_inherited() {
            false => Ok(T::area(&mut message.message).len()),
            true => {
                // Making an exception runs code of Python's, which the lock must not cover.
                drop(state);
                Err(queue_error(py, &Error::Forked, T::SIDE))
            }
        }
    }

    /// The memoryview of a `with` block.
    pub(super) fn enter<'py, O: PyClass>(
        &self,
        owner: &Bound<'py, O>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let view = PyMemoryView::from(owner.as_any())?;
        self.state.lock().entered = Some(PyWeakrefReference::new(&view)?.unbind());
        Ok(view)
    }

    /// Takes the message, if there is no buffer of it. None if it was taken before.
    ///
    /// # Errors
    /// `BufferError` if there is one.
    pub(super) fn take(&self, py: Python<'_>) -> PyResult<Option<OwnedInPlace<T>>> {
        let entered = self.state.lock().entered.take();
        if let Some(reference) = entered
            && let Some(view) = reference.bind(py).upgrade()
            && view.call_method0("release").is_err()
        {
            // The memoryview has a buffer of its own. The next call tries again.
            self.state.lock().entered = Some(reference);
        }
        let mut state = self.state.lock();
        match state.count {
            0 => Ok(state.message.take()),
            _ => Err(PyBufferError::new_err(
                "something still uses the memory of this message, such as a slice of its \
                 memoryview or an array on it: let go of that first, or make a copy of it",
            )),
        }
    }

    /// # Safety
    /// To be called as `bf_getbuffer` of the owner.
    pub(super) unsafe fn export<O: PyClass>(
        &self,
        owner: &Bound<'_, O>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let mut state = self.state.lock();
        let message = state.message.as_mut().ok_or_else(given_back)?;
        if message.guard.endpoint().is_inherited() {
            drop(state);
            return Err(queue_error(owner.py(), &Error::Forked, T::SIDE));
        }
        let area = T::area(&mut message.message);
        let readonly = c_int::from(T::SIDE == QueueSide::Receiver);
        // SAFETY: (1) The caller is `bf_getbuffer`, so `view` is one to fill in. (2) The memory
        // is there until the message is dropped, which is not before `count` is 0 again, and
        // not before the owner is, of which the buffer has a reference. (3) No other code
        // looks at memory that is lent for writing.
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
        state.count += 1;
        Ok(())
    }

    /// Notes that a buffer was released.
    pub(super) fn release(&self) {
        self.state.lock().count -= 1;
    }
}

pub(super) fn given_back() -> PyErr {
    PyValueError::new_err("this message's memory was given back")
}
