//! Python code that takes part in a run, on threads of the core: iterators that
//! bring stdin, and callbacks that get output.
//!
//! Such a thread may be in Python when the interpreter goes down. It then stays
//! where it is until the process ends: no thread waits for it.

use std::borrow::Cow;
use std::fmt;
use std::mem::ManuallyDrop;

use bytes::Bytes;
use procwright::{BoxError, Piece, Tap};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};

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

/// A Python object that is dropped with the interpreter lock held, so that what it holds
/// is free at once, and not when a thread next takes the lock.
pub(crate) struct AttachedPy(Option<Py<PyAny>>);

impl AttachedPy {
    pub(crate) fn new(object: Py<PyAny>) -> AttachedPy {
        AttachedPy(Some(object))
    }

    pub(crate) fn get(&self) -> Option<&Py<PyAny>> {
        self.0.as_ref()
    }

    fn call(&self, argument: Option<&[u8]>) -> Result<(), BoxError> {
        let called = Python::try_attach(|py| {
            let Some(callable) = &self.0 else {
                return Ok(());
            };
            let argument = argument.map(|bytes| PyBytes::new(py, bytes));
            let args = PyTuple::new(py, [argument])?;
            call(callable.bind(py), &args).map(drop)
        });
        called.unwrap_or(Ok(())).map_err(Raised::boxed)
    }
}

impl Drop for AttachedPy {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            // Leaked if the interpreter is gone.
            let kept = ManuallyDrop::new(object);
            let _ = Python::try_attach(|_| drop(ManuallyDrop::into_inner(kept)));
        }
    }
}

/// An exception on its way out of a callback. If nobody takes it, since another one was the
/// cause of the run's end, or the run has returned without waiting any longer, it is told by
/// `sys.unraisablehook`.
#[derive(Debug)]
pub(crate) struct Raised(Option<PyErr>);

impl Raised {
    pub(crate) fn boxed(error: PyErr) -> BoxError {
        Box::new(Raised(Some(error)))
    }

    fn take(mut self) -> PyErr {
        let taken = self.0.take();
        taken.unwrap_or_else(|| PyRuntimeError::new_err("the exception was taken before"))
    }
}

/// The exception that is the error of a run or child; the error itself if it is none.
pub(crate) fn exception_of(error: BoxError) -> Result<PyErr, BoxError> {
    // A handler of a signal has raised, or a callback.
    let raised = error.downcast::<PyErr>().map(|error| *error);
    raised.or_else(|error| Ok(error.downcast::<Raised>()?.take()))
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(error) => error.fmt(f),
            None => f.write_str("an exception"),
        }
    }
}

impl std::error::Error for Raised {}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(error) = self.0.take() {
            // Leaked if the interpreter is gone.
            let kept = ManuallyDrop::new(error);
            let _ = Python::try_attach(|py| {
                let error = ManuallyDrop::into_inner(kept);
                error.write_unraisable(py, None);
            });
        }
    }
}

/// A callback for each line.
pub(crate) fn line_callback(
    callable: Py<PyAny>,
) -> impl FnMut(&[u8]) -> Result<(), BoxError> + Send + 'static {
    let callable = AttachedPy::new(callable);
    move |line| callable.call(Some(line))
}

/// Calls back for each chunk, and with None at the end.
pub(crate) struct ChunkTap(AttachedPy);

impl ChunkTap {
    pub(crate) fn new(callable: Py<PyAny>) -> ChunkTap {
        ChunkTap(AttachedPy::new(callable))
    }
}

impl Tap for ChunkTap {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        self.0.call(Some(piece.bytes))
    }

    fn end(&mut self) -> Result<(), BoxError> {
        self.0.call(None)
    }
}

/// The data for stdin, from an iterator's `__next__`.
pub(crate) struct StdinPieces(AttachedPy);

impl StdinPieces {
    pub(crate) fn new(next: Py<PyAny>) -> StdinPieces {
        StdinPieces(AttachedPy::new(next))
    }
}

impl Iterator for StdinPieces {
    type Item = Result<Bytes, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        Python::try_attach(|py| {
            let next = self.0.0.as_ref()?.bind(py);
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
    Ok(Bytes::from_owner(PyBackedBytes::from(item)))
}
