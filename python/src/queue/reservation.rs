//! Messages that are made in place.
#![allow(unsafe_code)]

use std::ffi::c_int;

use procwright::error::Invalid;
use procwright::queue::{Error, Sender};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use super::arguments;
use super::errors::send_error;
use super::exports::Exports;
use super::guard::{InPlace, OwnedInPlace};
use crate::errors::invalid;

/// Room for a message in the queue's memory: see `Sender.reserve`.
///
/// A context manager, in whose block it is a `memoryview` to write to; and an object with
/// a buffer itself. Its bytes are whatever was there before. The message is sent when the
/// block is left, or by `commit()`; if an exception leaves the block, by `cancel()`, or
/// when the object is gone, nothing is sent. Until then its sender is `Busy`.
///
/// The message can be neither sent nor cancelled while something uses its memory, such as a
/// slice of the memoryview: that raises `BufferError`.
#[pyclass(module = "procwright.queue", frozen, weakref)]
pub(crate) struct Reservation(Exports<Sender>);

#[pymethods]
impl Reservation {
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        slf.get().0.enter(slf)
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (error, traceback);
        if !kind.is_none() {
            // The exception that leaves the block goes first, and its traceback may be what
            // keeps a slice alive: nothing is sent in any case.
            let _ = self.cancel(py);
            return Ok(());
        }
        match self.0.is_open() {
            true => self.commit(py, None),
            false => Ok(()),
        }
    }

    /// Sends it, or its first `length` bytes.
    #[pyo3(signature = (length=None))]
    fn commit(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::maybe_length)] length: Option<usize>,
    ) -> PyResult<()> {
        let most = self.0.len(py)?;
        let length = length.unwrap_or(most);
        if length > most {
            let problem = format!("is {length}, and {most} are reserved");
            return Err(invalid(
                py,
                &Invalid::new("length", problem, "reserve more"),
            ));
        }
        let Some(message) = self.0.take(py)? else {
            return Err(PyValueError::new_err("it was sent, or cancelled"));
        };
        if message.guard.endpoint().is_inherited() {
            return Err(send_error(py, &Error::Forked));
        }
        let InPlace { message, guard } = message;
        message.commit_first(length);
        drop(guard);
        Ok(())
    }

    /// Sends nothing. May be called again.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.0.take(py).map(drop)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.len(py)
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: this is `bf_getbuffer`.
        unsafe { slf.get().0.export(&slf, view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        let _ = view;
        self.0.release();
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.0.len(py) {
            Ok(length) => format!("<procwright.queue.Reservation of {length} bytes>"),
            Err(_) => "<procwright.queue.Reservation, over>".to_owned(),
        }
    }
}

impl Reservation {
    pub(super) fn new(message: OwnedInPlace<Sender>) -> Reservation {
        let exports = Exports::new();
        exports.open(message);
        Reservation(exports)
    }
}
