//! Functions and classes of the package's Python modules, called by their names.
//!
//! The modules are imported when they are needed first: `import procwright` is to be quick.

use pyo3::prelude::*;

/// Calls a function of a module of this package.
pub(crate) fn call<'py>(
    py: Python<'py>,
    module: &str,
    function: &str,
    args: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import(module)?.getattr(function)?.call1(args)
}

/// The exception that a class or function of a module of this package makes.
pub(crate) fn exception<'py>(
    py: Python<'py>,
    module: &str,
    function: &str,
    args: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    call(py, module, function, args).map_or_else(|error| error, PyErr::from_value)
}
