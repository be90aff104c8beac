//! The watched side.

use procwright::liveness::{Error, Guarantee, Invitation, PortableToken, Token};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::LivenessInvitation;
use super::words::guarantee;
use crate::arguments::{Argument, choice};
use crate::errors;
use crate::python::exception;
use procwright_os::sync::Mutex;

/// Says that this process lives, to all that were invited to watch.
///
/// The token holds until `release()`, until a `with` block is left, or until the object is
/// gone: monitors then say "released". If the process ends in any other way,
/// or runs another program, they say "died". It does not matter which thread made it.
///
/// The first starts one thread that sleeps for as long as the process lives; CPython 3.12
/// and later warn at an `os.fork()` of a process with threads. A fork has no part in a
/// token: whatever it does with the object, monitors tell of the process that made it.
///
/// No thread is started with `holder="thread"`: the main thread holds it itself. Then
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
    /// The holder, None once released. Locked with the interpreter lock held and for a moment
    /// only, so that no fork finds it locked.
    token: Mutex<Option<TokenHolder>>,
}

/// The thread that holds the word of the token.
enum TokenHolder {
    Process(Token),
    Thread(PortableToken),
}

impl TokenHolder {
    fn invite(&self) -> Result<Invitation, Error> {
        match self {
            TokenHolder::Process(token) => token.invite(),
            TokenHolder::Thread(place) => place.invite(),
        }
    }

    fn guarantee(&self) -> Result<Guarantee, Error> {
        match self {
            TokenHolder::Process(token) => Ok(token.guarantee()),
            TokenHolder::Thread(place) => place.guarantee(),
        }
    }
}

#[pymethods]
impl LivenessToken {
    #[new]
    #[pyo3(signature = (holder=false), text_signature = "(holder='process')")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = is_thread)] holder: bool,
    ) -> PyResult<LivenessToken> {
        let token = match holder {
            false => py.detach(|| Token::new().map(TokenHolder::Process)),
            true => py.detach(|| PortableToken::new().map(TokenHolder::Thread)),
        };
        let token = token.map_err(|error| errors::liveness(py, &error))?;
        Ok(LivenessToken {
            token: Mutex::new(Some(token)),
        })
    }

    /// An invitation for a process that is to watch: to be sent, pickled or inherited.
    fn invite(&self, py: Python<'_>) -> PyResult<LivenessInvitation> {
        let invitation = self.token.lock().as_ref().ok_or_else(released)?.invite();
        let invitation = invitation.map_err(|error| refused(py, &error))?;
        Ok(LivenessInvitation(invitation))
    }

    /// The promise of monitors of it: a `LivenessGuarantee`.
    fn guarantee<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let promised = self.token.lock().as_ref().ok_or_else(released)?.guarantee();
        guarantee(py, promised.map_err(|error| refused(py, &error))?)
    }

    /// Gives the token back. May be called again: only the first call does anything.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let mut kept = self.token.lock();
        if let Some(TokenHolder::Thread(place)) = &*kept
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
        // Otherwise the block would run as if it held a token.
        if slf.get().token.lock().is_none() {
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
        match self.token.lock().is_some() {
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

/// The exception for what cannot be done with a token.
/// True if the thread itself is to hold the token.
fn is_thread(given: Argument<'_, '_>) -> PyResult<bool> {
    choice("holder", given, &[("process", false), ("thread", true)])
}

fn refused(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::NotMain => {
            let text = "the main thread holds this token, and no other can do anything with it";
            exception(py, errors::MODULE, "LivenessError", ("not_main", text))
        }
        error => errors::liveness(py, error),
    }
}

fn released() -> PyErr {
    PyValueError::new_err("the token was released")
}
