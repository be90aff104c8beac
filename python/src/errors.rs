//! Errors of the core as exceptions. Their classes are Python's, and are made
//! when the first one is needed.

use procwright::Error;
use procwright::error::Invalid;
use procwright::liveness;
use procwright::process::ProcessError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rustix::io::Errno;

pub(crate) const MODULE: &str = "procwright._errors";

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

/// The exception for what went wrong with a process.
pub(crate) fn process(py: Python<'_>, error: &ProcessError) -> PyErr {
    let text = error.to_string();
    let made = match error {
        ProcessError::Invalid(error) => return invalid(py, error),
        ProcessError::Gone(id) => py.import(MODULE).and_then(|module| {
            let id = id.map(|id| (id.pid(), id.to_string()));
            module.getattr("_no_such_process")?.call1((id, text))
        }),
        ProcessError::System { source, .. } => return system(source, text),
        _ => return PyOSError::new_err(text),
    };
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception for a token or a monitor that cannot be had.
pub(crate) fn liveness(py: Python<'_>, error: &liveness::Error) -> PyErr {
    let text = error.to_string();
    let reason = match error {
        liveness::Error::Unsupported(_) => "unsupported",
        liveness::Error::Full(_) => "full",
        liveness::Error::Stale(_) => "stale",
        liveness::Error::Forked => "forked",
        liveness::Error::NoParent(_) => "no_parent",
        liveness::Error::NotMain => "not_main",
        liveness::Error::Invalid(_) => return typed(py, MODULE, "InvalidValue", (text,)),
        liveness::Error::Io(source) => return refused(py, source),
        _ => "other",
    };
    typed(py, MODULE, "LivenessError", (reason, text))
}

/// The exception for what the system refused, in Python's words.
pub(crate) fn refused(py: Python<'_>, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(errno) => {
            strerror(py, errno, error).map_or_else(|error| error, |reason| system(error, reason))
        }
        None if error.kind() == std::io::ErrorKind::InvalidInput => {
            typed(py, MODULE, "InvalidValue", (error.to_string(),))
        }
        None => system(error, error.to_string()),
    }
}

/// An `OSError` of the kind that its number says, with `text` as the reason.
pub(crate) fn system(error: &std::io::Error, text: String) -> PyErr {
    let errno = match (error.raw_os_error(), error.kind()) {
        (Some(errno), _) => errno,
        (None, std::io::ErrorKind::Unsupported) => Errno::NOTSUP.raw_os_error(),
        (None, _) => return PyOSError::new_err(text),
    };
    PyOSError::new_err((errno, text))
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

/// Where the exceptions of streams are.
pub(crate) const STREAMS: &str = "procwright._stream_errors";

/// What `function` of `module` makes.
pub(crate) fn typed<'py>(
    py: Python<'py>,
    module: &str,
    function: &str,
    args: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    let made = py
        .import(module)
        .and_then(|module| module.getattr(function)?.call1(args));
    made.map_or_else(|error| error, PyErr::from_value)
}
