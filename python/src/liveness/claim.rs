//! The right to clean up after a dead peer.

use procwright::liveness::{Claim, Cleaner};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::words::state_name;
use procwright_os::sync::Mutex;

/// The answer to asking for the right to clean up after a peer that has died.
///
/// True while the right is ours, and then no other process has it. As a context manager:
/// leaving normally says that it is done, leaving by an exception gives the right back, so
/// that another can have it. So does dropping the object, and the death of this process.
///
/// >>> import procwright
/// >>> with procwright.LivenessToken() as token:
/// ...     monitor = procwright.LivenessMonitor(token.invite())
/// ...     with monitor.claim() as claim:
/// ...         if claim:
/// ...             print("clean up")
/// ...     claim.kind
/// 'alive'
#[pyclass(module = "procwright", frozen, weakref)]
pub(crate) struct LivenessClaim {
    kind: &'static str,
    /// The right, None if it is not ours any more. Locked with the interpreter lock held and for
    /// a moment only.
    right: Mutex<Option<Cleaner>>,
}

#[pymethods]
impl LivenessClaim {
    /// The answer: "ours"; "theirs", another is at it; "done", another has cleaned up; "alive" or
    /// "released", the peer has not died and there is nothing to clean up.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn __bool__(&self) -> bool {
        self.right.lock().is_some()
    }

    /// Says that there is nothing left to clean up: others that ask are told "done" from now on.
    fn done(&self) -> PyResult<()> {
        let right = self.take()?;
        right.done();
        Ok(())
    }

    /// Lets another have the right, which then is the only one.
    fn give_back(&self) -> PyResult<()> {
        drop(self.take()?);
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) {
        let _ = (error, traceback);
        match self.right.lock().take() {
            Some(right) if kind.is_none() => right.done(),
            given_back => drop(given_back),
        }
    }

    fn __repr__(&self) -> String {
        let over = match self.kind == "ours" && self.right.lock().is_none() {
            true => ", over",
            false => "",
        };
        format!("<procwright.LivenessClaim, {}{over}>", self.kind)
    }
}

impl LivenessClaim {
    pub(super) fn new(claim: Claim) -> LivenessClaim {
        let (kind, right) = match claim {
            Claim::Ours(right) => ("ours", Some(right)),
            Claim::Theirs => ("theirs", None),
            Claim::Done => ("done", None),
            Claim::NotDied(state) => (state_name(state), None),
        };
        LivenessClaim {
            kind,
            right: Mutex::new(right),
        }
    }

    fn take(&self) -> PyResult<Cleaner> {
        self.right.take().ok_or_else(|| {
            PyValueError::new_err(match self.kind {
                "ours" => "the right was given back, or used: ask for it again".to_owned(),
                kind => format!("the right is not ours: the answer was {kind:?}"),
            })
        })
    }
}
