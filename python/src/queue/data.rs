//! Messages that a caller brings.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes of an object of Python's, which stay where they are as long as this is there.
pub(super) enum Data<'py> {
    /// The common kind: it needs no buffer.
    Bytes(Bound<'py, PyBytes>),
    Other(PyUntypedBuffer),
}

impl<'py> Data<'py> {
    /// # Errors
    /// `TypeError` for what has no bytes in one piece.
    pub(super) fn of(object: &Bound<'py, PyAny>) -> PyResult<Data<'py>> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Data::Bytes(bytes.clone()));
        }
        let py = object.py();
        let hint = |problem: &str| {
            let kind = object.get_type().qualname();
            let kind = kind.map_or_else(|_| "it".to_owned(), |kind| kind.to_string());
            PyTypeError::new_err(format!("a message is bytes, and {kind} {problem}"))
        };
        let buffer = match PyUntypedBuffer::get(object) {
            Ok(buffer) => buffer,
            Err(error)
                if error.is_instance_of::<PyTypeError>(py)
                    || error.is_instance_of::<PyBufferError>(py) =>
            {
                return Err(hint(
                    "gives none: pass bytes, or what has a buffer, such as a bytearray, an \
                     array or a memoryview; encode text; for other objects there is ObjectSender",
                ));
            }
            Err(error) => return Err(error),
        };
        if !buffer.is_c_contiguous() {
            return Err(hint(
                "is not in one piece: pass a copy of it, such as bytes(it)",
            ));
        }
        Ok(Data::Other(buffer))
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Data::Bytes(bytes) => bytes.as_bytes(),
            Data::Other(buffer) => match NonNull::new(buffer.buf_ptr().cast()) {
                None => &[],
                // SAFETY: `of` has seen that it is in one piece. Its owner neither moves
                // nor frees it as long as the buffer is held, which is as long as `self`
                // is. A thread that writes there while it is sent sends old bytes, new
                // ones or some of both, as with every `send` and `write` of CPython; and
                // whatever those are, they are bytes.
                Some(start) => unsafe {
                    std::slice::from_raw_parts(start.as_ptr(), buffer.len_bytes())
                },
            },
        }
    }

    pub(super) fn len(&self) -> usize {
        self.as_slice().len()
    }
}
