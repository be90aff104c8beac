//! What has become of the process at the other side, where a child of this one has it.

use std::time::Instant;

use procwright::time::Deadline;
use procwright_os::fork::OnceBox;
use pyo3::prelude::*;

use super::errors::is_of_other_side;

/// What is asked about an error which says that the other side has gone. Nothing but for a queue
/// to or from a child: of others nobody here knows the process.
#[derive(Debug, Default)]
pub(super) struct OtherSide(OnceBox<Py<PyAny>>);

impl OtherSide {
    /// From now on `ask` is called with such an error and the seconds for which it may wait, None
    /// for no limit, and gives the exception to raise. It keeps
    /// nothing of this object, which the garbage collector would not see.
    pub(super) fn set(&self, ask: Py<PyAny>) {
        // The first one is of the same child.
        self.0.get_or_insert(ask);
    }

    /// The object that is asked, for another end of the same queue.
    pub(super) fn shared(&self, py: Python<'_>) -> OtherSide {
        let other = OtherSide::default();
        if let Some(ask) = self.0.get() {
            other.set(ask.clone_ref(py));
        }
        other
    }

    /// The result of a call that may wait until then, and has let go of its end of the queue: to
    /// ask may take as long.
    pub(super) fn told<T>(
        &self,
        py: Python<'_>,
        result: PyResult<T>,
        until: Deadline,
    ) -> PyResult<T> {
        self.asked(py, result, || {
            let left = until.remaining(Instant::now());
            left.map(|left| left.as_secs_f64())
        })
    }

    /// The result of a call that never waits: what is known now is told.
    pub(super) fn told_at_once<T>(&self, py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
        self.asked(py, result, || Some(0.0))
    }

    fn asked<T>(
        &self,
        py: Python<'_>,
        result: PyResult<T>,
        left: impl FnOnce() -> Option<f64>,
    ) -> PyResult<T> {
        match result {
            Err(error) if self.0.get().is_some() => Err(self.in_place_of(py, error, left())),
            result => result,
        }
    }

    #[cold]
    fn in_place_of(&self, py: Python<'_>, error: PyErr, left: Option<f64>) -> PyErr {
        let Some(ask) = self.0.get() else {
            return error;
        };
        match is_of_other_side(py, &error) {
            Ok(true) => {}
            Ok(false) => return error,
            Err(failed) => return failed,
        }
        let found = ask.call1(py, (error.value(py), left));
        found.map_or_else(
            |failed| failed,
            |found| PyErr::from_value(found.into_bound(py)),
        )
    }
}
