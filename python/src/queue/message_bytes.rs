//! The bytes of a message that is to be sent.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::bad_type;

/// The bytes of an object of Python's, which stay where they are as long as this lives.
pub(super) enum MessageBytes<'py> {
    /// The common kind, which needs no buffer.
    Bytes(Bound<'py, PyBytes>),
    Other(SimpleBuffer<'py>),
}

impl<'py> MessageBytes<'py> {
    /// The value of the parameter `name`.
    ///
    /// # Errors
    /// What has no bytes in one piece is refused.
    pub(super) fn from_object(
        name: &str,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<MessageBytes<'py>> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(MessageBytes::Bytes(bytes.clone())),
            Err(_) => SimpleBuffer::from_object(name, object).map(MessageBytes::Other),
        }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            MessageBytes::Bytes(bytes) => bytes.as_bytes(),
            MessageBytes::Other(buffer) => buffer.as_slice(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(super) fn is_readonly(&self) -> bool {
        match self {
            MessageBytes::Bytes(_) => true,
            MessageBytes::Other(buffer) => buffer.view.readonly != 0,
        }
    }
}

/// A buffer of the kind `PyBUF_SIMPLE`. PyO3's own wants shape and strides, which some
/// objects do not give.
pub(super) struct SimpleBuffer<'py> {
    /// The buffer, in a box, as it may point into itself.
    view: Box<ffi::Py_buffer>,
    py: Python<'py>,
}

impl<'py> SimpleBuffer<'py> {
    fn from_object(name: &str, object: &Bound<'py, PyAny>) -> PyResult<SimpleBuffer<'py>> {
        let py = object.py();
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: attached; it is filled in, or an error is set.
        let got =
            unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, ffi::PyBUF_SIMPLE) };
        if got == 0 {
            return Ok(SimpleBuffer { view, py });
        }
        let error = PyErr::fetch(py);
        let hint = if error.is_instance_of::<PyTypeError>(py) {
            "pass bytes, or what has a buffer, such as a bytearray, an array or a memoryview; \
             encode text; for other objects there is ObjectSender"
        } else if error.is_instance_of::<PyBufferError>(py) {
            "it is not in one piece, pass a copy of it, such as bytes(it)"
        } else {
            return Err(error);
        };
        Err(bad_type(name, object, hint))
    }

    fn as_slice(&self) -> &[u8] {
        let length = usize::try_from(self.view.len).unwrap_or(0);
        match NonNull::new(self.view.buf.cast()) {
            None => &[],
            // SAFETY: a simple buffer is one piece of so many bytes. Its owner
            // neither moves nor frees it as long as the buffer is held, which is as long
            // as `self` is. A thread that writes there while it is sent sends old bytes,
            // new ones or some of both, as with every `send` and `write` of CPython; and
            // whatever those are, they are bytes.
            Some(start) => unsafe { std::slice::from_raw_parts(start.as_ptr(), length) },
        }
    }
}

impl Drop for SimpleBuffer<'_> {
    fn drop(&mut self) {
        let _attached = self.py;
        // SAFETY: attached, says the lifetime; it was filled in, and is given back once.
        unsafe { ffi::PyBuffer_Release(&mut *self.view) };
    }
}
