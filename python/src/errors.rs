//! Errors of the core as exceptions. Their classes are Python's, and are made
//! when the first one is needed.

use procwright::Error;
use procwright::error::Invalid;
use pyo3::prelude::*;

const MODULE: &str = "procwright._errors";

/// The exception for a value that cannot be used.
pub(crate) fn invalid(py: Python<'_>, error: &Invalid) -> PyErr {
    let text = error.to_string();
    let made = py
        .import(MODULE)
        .and_then(|module| module.getattr("InvalidValue")?.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception for a run that did not start.
pub(crate) fn not_started(py: Python<'_>, error: &Error) -> PyErr {
    let text = error.to_string();
    let made = py.import(MODULE).and_then(|module| match error {
        Error::Spawn { source, .. } => {
            let reason = strerror(py, source.errno(), &source.source)?;
            let step = source.step.name();
            module.getattr("_spawn_error")?.call1((
                source.errno(),
                reason,
                &source.object,
                step,
                text,
            ))
        }
        _ => module.getattr("InvalidValue")?.call1((text,)),
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The system's words for an error, as Python says them.
pub(crate) fn strerror(py: Python<'_>, errno: i32, error: &std::io::Error) -> PyResult<String> {
    match errno {
        0 => Ok(error.to_string()),
        errno => py
            .import("os")?
            .getattr("strerror")?
            .call1((errno,))?
            .extract(),
    }
}
