//! Python code that takes part in a run, on threads of the core: iterators that
//! bring stdin, and callbacks that get output.
//!
//! Such a thread may be in Python when the interpreter goes down. It then stays
//! where it is until the process ends: no thread waits for it.

use std::borrow::Cow;

use bytes::Bytes;
use procwright::{BoxError, Piece, StdStream, Tap};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::attach::{Attached, attach};
use crate::raised::Raised;

/// Calls a callable of the user's.
///
/// Up to Python 3.13, a thread that wants the interpreter lock while the
/// interpreter goes down is ended by `pthread_exit`, in the middle of the user's
/// code, which unwinds through us: without care that aborts the process. So the
/// unwinding ends here, and the thread sleeps until the process is gone.
#[allow(unsafe_code)]
pub(crate) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    // pyo3-ffi has it with an ABI that does not let the unwinding reach us.
    unsafe extern "C-unwind" {
        fn PyObject_CallObject(
            callable: *mut ffi::PyObject,
            args: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject;
    }
    let staying = StayOnDrop;
    // SAFETY: we are attached, both are live objects, the second a tuple, and
    // what comes back is an owned reference or NULL with an exception set.
    let result = unsafe {
        let result = PyObject_CallObject(callable.as_ptr(), args.as_ptr());
        Bound::from_owned_ptr_or_err(callable.py(), result)
    };
    std::mem::forget(staying);
    result
}

/// Never lets go of the thread that drops it.
struct StayOnDrop;

impl Drop for StayOnDrop {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls a callable of the user's with bytes, or None, on a thread of the core.
fn call_with(callable: &Attached<Py<PyAny>>, argument: Option<&[u8]>) -> Result<(), BoxError> {
    let called = attach(|py| {
        let argument = argument.map(|bytes| PyBytes::new(py, bytes));
        let args = PyTuple::new(py, [argument])?;
        call(callable.bind(py), &args).map(drop)
    });
    called.unwrap_or(Ok(())).map_err(Raised::boxed)
}

/// A callback for each line.
pub(crate) fn line_callback(
    callable: Attached<Py<PyAny>>,
) -> impl FnMut(&[u8]) -> Result<(), BoxError> + Send + 'static {
    move |line| call_with(&callable, Some(line))
}

/// Calls back for each chunk, and with None at the end.
pub(crate) struct ChunkTap(Attached<Py<PyAny>>);

impl ChunkTap {
    pub(crate) fn new(callable: Attached<Py<PyAny>>) -> ChunkTap {
        ChunkTap(callable)
    }
}

impl Tap for ChunkTap {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        call_with(&self.0, Some(piece.bytes))
    }

    fn end(&mut self) -> Result<(), BoxError> {
        call_with(&self.0, None)
    }
}

/// Calls back for each chunk of a stream that has a callback, and each of them with None at the
/// end.
pub(crate) struct ChunkTaps(pub(crate) Vec<(StdStream, Attached<Py<PyAny>>)>);

impl Tap for ChunkTaps {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let mut callables = self.0.iter().filter(|(stream, _)| *stream == piece.stream);
        callables.try_for_each(|(_, callable)| call_with(callable, Some(piece.bytes)))
    }

    fn end(&mut self) -> Result<(), BoxError> {
        let mut callables = self.0.iter();
        callables.try_for_each(|(_, callable)| call_with(callable, None))
    }
}

/// The data for stdin, from an iterator's `__next__`.
pub(crate) struct StdinPieces(Attached<Py<PyAny>>);

impl StdinPieces {
    pub(crate) fn new(next: Py<PyAny>) -> StdinPieces {
        StdinPieces(Attached::new(next))
    }
}

impl Iterator for StdinPieces {
    type Item = Result<Bytes, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        attach(|py| {
            let next = self.0.bind(py);
            let item = match call(next, &PyTuple::empty(py)) {
                Ok(item) => item,
                Err(error) if error.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) => {
                    return None;
                }
                Err(error) => return Some(Err(Raised::boxed(error))),
            };
            Some(piece(&item).map_err(Raised::boxed))
        })
        .flatten()
    }
}

/// An item of the iterator: `bytes` as it is, other buffers as a copy.
fn piece(item: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let py = item.py();
    let item = match item.cast::<PyBytes>() {
        Ok(bytes) => bytes.clone(),
        Err(_) => {
            let name = item.get_type().name()?.to_string();
            let is_buffer = ["bytearray", "memoryview", "array"].contains(&name.as_str());
            if !is_buffer {
                let hint: Cow<'_, str> = match name.as_str() {
                    "str" => " (pass text=True to have it encoded)".into(),
                    _ => "".into(),
                };
                return Err(PyTypeError::new_err(format!(
                    "stdin: the iterator gave {name}, not bytes{hint}"
                )));
            }
            let bytes = py.get_type::<PyBytes>().call1((item,))?;
            bytes.cast_into::<PyBytes>()?
        }
    };
    // A copy: the core drops what it has written wherever it is, and would have to wait for the
    // interpreter lock there.
    Ok(Bytes::copy_from_slice(item.as_bytes()))
}
