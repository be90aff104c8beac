//! Words and tuples for Python, and calls of the Python half.

use procwright::liveness::{Guarantee, Mechanism, Names, State};
use pyo3::prelude::*;

use crate::python;

/// Calls a function of `procwright/_liveness.py`.
pub(super) fn call_python<'py>(
    py: Python<'py>,
    function: &str,
    args: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    python::call(py, "procwright._liveness", function, args)
}

/// The word for a state.
pub(super) fn state_name(state: State) -> &'static str {
    match state {
        State::Alive => "alive",
        State::Released => "released",
        State::Died => "died",
    }
}

/// A `LivenessGuarantee`.
pub(super) fn guarantee(py: Python<'_>, guarantee: Guarantee) -> PyResult<Bound<'_, PyAny>> {
    let names = match guarantee.names {
        Names::Image => "image",
        Names::Process => "process",
        Names::Thread => "thread",
        _ => "other",
    };
    let mechanism = match guarantee.mechanism {
        Mechanism::RobustWord => "robust_word",
        Mechanism::Watcher => "watcher",
        _ => "other",
    };
    call_python(py, "LivenessGuarantee", (names, mechanism))
}
