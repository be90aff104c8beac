//! Exceptions on their way through the core, which knows them as errors.

use std::fmt;

use procwright::BoxError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::attach::{Attached, attach};

/// An exception on its way out of a callback. If nobody takes it, since another one was the
/// cause of the run's end, or the run has returned without waiting any longer, it is told by
/// `sys.unraisablehook`.
#[derive(Debug)]
pub(crate) struct Raised {
    error: Option<Attached<PyErr>>,
    /// Told where nobody takes it.
    is_told: bool,
}

impl Raised {
    pub(crate) fn boxed(error: PyErr) -> BoxError {
        Box::new(Raised {
            error: Some(Attached::new(error)),
            is_told: true,
        })
    }

    /// An exception of a signal's handler, which is not told if nobody takes it: the second
    /// Ctrl-C ends the grace, and the first is the exception of the call.
    pub(crate) fn boxed_of_handler(error: PyErr) -> BoxError {
        Box::new(Raised {
            error: Some(Attached::new(error)),
            is_told: false,
        })
    }

    fn take(mut self, py: Python<'_>) -> PyErr {
        match self.error.take() {
            Some(error) => error.into_inner(py),
            None => PyRuntimeError::new_err("the exception was taken before"),
        }
    }
}

/// The exception that is the error of a run or child; the error itself if it is none.
pub(crate) fn exception_of(py: Python<'_>, error: BoxError) -> Result<PyErr, BoxError> {
    Ok(error.downcast::<Raised>()?.take(py))
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => attach(|_| error.fmt(f)).unwrap_or(Ok(())),
            None => f.write_str("an exception"),
        }
    }
}

impl std::error::Error for Raised {}

impl Drop for Raised {
    fn drop(&mut self) {
        if self.is_told
            && let Some(error) = self.error.take()
        {
            let _ = attach(|py| error.into_inner(py).write_unraisable(py, None));
        }
    }
}
