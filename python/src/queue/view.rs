//! Messages that are read in place.
#![allow(unsafe_code)]

use std::ffi::c_int;

use procwright::queue::Receiver;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use super::exports::{Exports, given_back};
use super::guard::OwnedInPlace;

/// A message in the queue's memory: see `Receiver.recv_view`.
///
/// A context manager, in whose block it is a read-only `memoryview`; and an object with
/// a buffer itself. The message is received when it is released: when the block is left,
/// by `release()`, or when the object is gone. Until then its receiver is
/// `Busy`, and if this process dies, the message is not received.
///
/// The message cannot be released while something uses its memory, such as a slice of the
/// memoryview: that raises `BufferError`, and the message stays where it is. Where the
/// block is left by another exception, it is released with the last that uses it.
///
/// A fork does not have the memory: there even to look at a memoryview that was made before
/// ends the process.
#[pyclass(module = "procwright.queue", frozen, weakref)]
pub(crate) struct View(Exports<Receiver>);

#[pymethods]
impl View {
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
        match self.release(py) {
            // The exception that leaves the block goes first, and its traceback may be what
            // keeps a slice alive.
            Err(_) if !kind.is_none() => Ok(()),
            released => released,
        }
    }

    /// Receives the message. May be called again.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.0.take(py).map(drop)
    }

    #[getter]
    fn released(&self) -> bool {
        !self.0.is_open()
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
            Ok(length) => format!("<procwright.queue.View of {length} bytes>"),
            Err(_) => "<procwright.queue.View, released>".to_owned(),
        }
    }
}

impl View {
    /// Takes the message out.
    ///
    /// # Errors
    /// `BufferError` if there is a buffer of it; `ValueError` if it was released.
    pub(super) fn take_message(&self, py: Python<'_>) -> PyResult<OwnedInPlace<Receiver>> {
        self.0.take(py)?.ok_or_else(given_back)
    }

    /// # Errors
    /// `MemoryError`: then the message was not received.
    pub(super) fn new(py: Python<'_>, message: OwnedInPlace<Receiver>) -> PyResult<Py<View>> {
        match Py::new(py, View(Exports::new())) {
            Ok(view) => {
                view.get().0.open(message);
                Ok(view)
            }
            Err(error) => {
                message.put_back();
                Err(error)
            }
        }
    }
}
