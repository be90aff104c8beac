//! The watched side.

use std::sync::{Mutex, MutexGuard, PoisonError};

use procwright::liveness::{Error, Guarantee, Invitation, PortableToken, Token};
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
/// With `holder="thread"` no thread is started: the main thread holds it itself. Then
/// monitors say "died" when that thread has ended, which for almost all programs is the same;
/// only the main thread may make it, and release it.
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
    token: Mutex<Option<Holder>>,
}

enum Holder {
    Process(Token),
    Thread(PortableToken),
}

impl Holder {
    fn invite(&self) -> Result<Invitation, Error> {
        match self {
            Holder::Process(token) => token.invite(),
            Holder::Thread(place) => place.invite(),
        }
    }

    fn guarantee(&self) -> Result<Guarantee, Error> {
        match self {
            Holder::Process(token) => Ok(token.guarantee()),
            Holder::Thread(place) => place.guarantee(),
        }
    }
}

#[pymethods]
impl LivenessToken {
    #[new]
    #[pyo3(signature = (holder="process"))]
    fn new(py: Python<'_>, holder: &str) -> PyResult<LivenessToken> {
        let token = match holder {
            "process" => py.detach(|| Token::new().map(Holder::Process)),
            "thread" => py.detach(|| PortableToken::new().map(Holder::Thread)),
            other => {
                let holders = "\"process\" or \"thread\"";
                return Err(choice(py, "holder", other, holders));
            }
        };
        let token = token.map_err(|error| errors::liveness(py, &error))?;
        Ok(LivenessToken {
            token: Mutex::new(Some(token)),
        })
    }

    /// What a process needs to watch: to be sent, pickled or inherited.
    fn invite(&self, py: Python<'_>) -> PyResult<LivenessInvitation> {
        let invitation = self.lock().as_ref().ok_or_else(released)?.invite();
        let invitation = invitation.map_err(|error| refused(py, &error))?;
        Ok(LivenessInvitation::of(invitation))
    }

    /// What monitors of it can promise: a `LivenessGuarantee`.
    fn guarantee<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let promised = self.lock().as_ref().ok_or_else(released)?.guarantee();
        guarantee(py, promised.map_err(|error| refused(py, &error))?)
    }

    /// Gives it back. Again and again, if need be: only the first does anything.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let mut kept = self.lock();
        if let Some(Holder::Thread(place)) = &*kept
            && !place.release()
        {
            return Err(refused(py, &Error::NotMain));
        }
        let token = kept.take();
        drop(kept);
        py.detach(|| drop(token));
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        // Or the block would run as if it held something.
        if slf.get().lock().is_none() {
            return Err(released());
        }
        Ok(slf)
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (kind, error, traceback);
        self.release(py)
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
    fn lock(&self) -> MutexGuard<'_, Option<Holder>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The exception for what cannot be done with a token that there is.
fn refused(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::NotMain => {
            let text = "the main thread holds this token, and no other can do anything with it";
            errors::typed(py, errors::MODULE, "LivenessError", ("not_main", text))
        }
        error => errors::liveness(py, error),
    }
}

fn released() -> PyErr {
    PyValueError::new_err("the token was released")
}
