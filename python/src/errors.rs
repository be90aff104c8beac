//! Errors of the core as exceptions, whose classes are Python's.

use std::ffi::OsString;
use std::os::fd::{OwnedFd, RawFd};

use procwright::Error;
use procwright::duplicate_fd;
use procwright::error::{Invalid, SpawnError};
use procwright::liveness;
use procwright::pipeline;
use procwright::process::ProcessError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rustix::io::Errno;

use crate::python::exception;

/// The module of the exceptions that are not those of streams or queues.
pub(crate) const MODULE: &str = "procwright._errors";

/// The module of the exception for a value that cannot be used.
pub(crate) const INVALID: &str = "procwright._invalid";

/// The exception for a value that cannot be used.
pub(crate) fn invalid(py: Python<'_>, error: &Invalid) -> PyErr {
    exception(
        py,
        INVALID,
        "refused_by_core",
        (error.what(), error.problem(), error.hint()),
    )
}

/// The exception for a run that did not start.
pub(crate) fn not_started(py: Python<'_>, error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Spawn { source, .. } => spawn_refused(py, source, text),
        Error::Invalid(error) => invalid(py, error),
        Error::Cancelled { .. } => {
            exception(py, "procwright._run_errors", "_cancelled_before", (text,))
        }
        _ => exception(py, INVALID, "InvalidValue", (text,)),
    }
}

/// The exception for a pipeline that did not start.
pub(crate) fn pipeline_not_started(py: Python<'_>, error: &pipeline::Error) -> PyErr {
    let text = error.to_string();
    match error {
        pipeline::Error::Spawn { source, .. } => spawn_refused(py, source, text),
        pipeline::Error::Invalid { stage, source } => {
            let refused = invalid(py, source);
            // For its words, which have the value that was given.
            match refused.value(py).setattr("_stage", *stage) {
                Ok(()) => refused,
                Err(error) => error,
            }
        }
        pipeline::Error::Cancelled { .. } => {
            exception(py, "procwright._run_errors", "_cancelled_before", (text,))
        }
        _ => exception(py, INVALID, "InvalidValue", (text,)),
    }
}

/// The exception for a step of a start that was refused.
fn spawn_refused(py: Python<'_>, source: &SpawnError, text: String) -> PyErr {
    match strerror(py, source.errno(), &source.source) {
        Ok(reason) => {
            let step = source.step.name();
            let parts = (source.errno(), reason, &source.object, step, text);
            exception(py, MODULE, "_spawn_error", parts)
        }
        Err(error) => error,
    }
}

/// The exception for a start that was refused on this side of the core.
pub(crate) fn start_refused(py: Python<'_>, argv: &[OsString], source: SpawnError) -> PyErr {
    let words = argv.iter().map(|word| word.to_string_lossy());
    let command = words.collect::<Vec<_>>().join(" ");
    let source = match source.errno() == Errno::MFILE.raw_os_error() {
        true => source.with_hint(NO_DESCRIPTOR),
        false => source,
    };
    not_started(py, &Error::Spawn { command, source })
}

const NO_DESCRIPTOR: &str =
    "this process has no descriptor left: raise RLIMIT_NOFILE or close some";

/// The exception for an error of a process.
pub(crate) fn process(py: Python<'_>, error: &ProcessError) -> PyErr {
    let text = error.to_string();
    match error {
        ProcessError::Invalid(error) => invalid(py, error),
        ProcessError::Gone(id) => {
            let id = id.map(|id| (id.pid(), id.to_string()));
            exception(py, MODULE, "_no_such_process", (id, text))
        }
        ProcessError::System { source, .. } => system(source, text),
        _ => PyOSError::new_err(text),
    }
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
        liveness::Error::Invalid(_) => return exception(py, INVALID, "InvalidValue", (text,)),
        liveness::Error::Io(source) => return refused(py, source),
        _ => "other",
    };
    exception(py, MODULE, "LivenessError", (reason, text))
}

/// The exception for an error of the system, in Python's words.
pub(crate) fn refused(py: Python<'_>, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(errno) => {
            strerror(py, errno, error).map_or_else(|error| error, |reason| system(error, reason))
        }
        None if error.kind() == std::io::ErrorKind::InvalidInput => {
            exception(py, INVALID, "InvalidValue", (error.to_string(),))
        }
        None => system(error, error.to_string()),
    }
}

/// An `OSError` of the class for its number, with `text` as the reason.
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

/// A duplicate of a descriptor of the caller's, which errors call `shown`.
///
/// # Errors
/// `OSError`.
pub(crate) fn duplicate(py: Python<'_>, number: RawFd, shown: &str) -> PyResult<OwnedFd> {
    duplicate_fd(number).map_err(|error| not_duplicated(py, &error, shown))
}

/// The exception for a descriptor that cannot be duplicated, which errors call `shown`.
pub(crate) fn not_duplicated(py: Python<'_>, error: &std::io::Error, shown: &str) -> PyErr {
    let errno = error.raw_os_error().unwrap_or(0);
    match strerror(py, errno, error) {
        Ok(reason) => system(error, format!("{shown}: {reason}")),
        Err(error) => error,
    }
}
