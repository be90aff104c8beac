//! The watched side.

use std::sync::{Mutex, MutexGuard, PoisonError};

use procwright::liveness::Token;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{LivenessInvitation, guarantee};
use crate::errors;
use crate::values::choice;

/// Says that this process lives, to whoever was invited to watch.
///
/// It holds until `release()`, until a `with` block is left, or until nobody has the
/// object any more: monitors then say "released". If the process ends in any other way,
/// or runs another program, they say "died". It does not matter which thread made it.
///
/// The first starts one thread that sleeps for as long as the process lives; CPython 3.12
/// and later warn at an `os.fork()` of a process with threads. A fork has no part in a
/// token: whatever it does with the object, monitors tell of the process that made it.
///
/// Raises `LivenessError` where it cannot be had; then monitor the process instead.
///
/// >>> import procwright
/// >>> with procwright.LivenessToken() as token:
/// ...     monitor = procwright.LivenessMonitor(token.invite())
/// ...     monitor.alive()
/// True
/// >>> monitor.state()
/// 'released'
#[pyclass(module = "procwright", frozen, weakref)]
pub(crate) struct LivenessToken {
    /// None once released. Locked with the interpreter lock held and for a moment
    /// only, so that no fork finds it locked.
    token: Mutex<Option<Token>>,
}

#[pymethods]
impl LivenessToken {
    #[new]
    #[pyo3(signature = (holder="process"))]
    fn new(py: Python<'_>, holder: &str) -> PyResult<LivenessToken> {
        if holder != "process" {
            return Err(choice(py, "holder", holder, "\"process\""));
        }
        let token = py.detach(Token::new);
        let token = token.map_err(|error| errors::liveness(py, &error))?;
        Ok(LivenessToken {
            token: Mutex::new(Some(token)),
        })
    }

    /// What a process needs to watch: to be sent, pickled or inherited.
    fn invite(&self, py: Python<'_>) -> PyResult<LivenessInvitation> {
        let invitation = self.lock().as_ref().ok_or_else(released)?.invite();
        let invitation = invitation.map_err(|error| errors::liveness(py, &error))?;
        Ok(LivenessInvitation::of(invitation))
    }

    /// What monitors of it can promise: a `LivenessGuarantee`.
    fn guarantee<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let promised = self.lock().as_ref().ok_or_else(released)?.guarantee();
        guarantee(py, promised)
    }

    /// Gives it back. Again and again, if need be: only the first does anything.
    fn release(&self, py: Python<'_>) {
        let token = self.lock().take();
        py.detach(|| drop(token));
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) {
        let _ = (kind, error, traceback);
        self.release(py);
    }

    fn __repr__(&self) -> &'static str {
        match self.lock().is_some() {
            true => "<procwright.LivenessToken, held>",
            false => "<procwright.LivenessToken, released>",
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a LivenessToken cannot be pickled, it stands for this process: \
             pass token.invite()",
        ))
    }
}

impl LivenessToken {
    fn lock(&self) -> MutexGuard<'_, Option<Token>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn released() -> PyErr {
    PyValueError::new_err("the token was released")
}
