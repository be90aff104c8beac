//! Calls of the Python half.

use pyo3::prelude::*;

use crate::python;

/// Calls a function of `procwright/_queue.py`.
pub(super) fn call_python<'py>(
    py: Python<'py>,
    function: &str,
    args: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    python::call(py, "procwright._queue", function, args)
}
