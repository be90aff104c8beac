//! Errors of streams as exceptions.

use std::io;

use procwright::stream::{Broken, Closed, LineTooLong, Stalled};
use pyo3::prelude::*;
use rustix::io::Errno;

use crate::errors::system;
use crate::python::exception;

/// The module of the exceptions of streams.
const STREAMS: &str = "procwright._stream_errors";

/// The exception for an error of the stream that is called `name`.
pub(crate) fn failed(py: Python<'_>, error: &io::Error, name: &str) -> PyErr {
    let inner = error.get_ref();
    if let Some(error) = Stalled::of(error) {
        return stalled(py, error);
    }
    if Closed::is(error) {
        return exception(py, STREAMS, "StreamClosed", (name,));
    }
    if error.kind() == io::ErrorKind::Unsupported {
        return exception(py, STREAMS, "StreamForked", (name,));
    }
    if let Some(long) = inner.and_then(|inner| inner.downcast_ref::<LineTooLong>()) {
        return exception(py, STREAMS, "LineTooLong", (name, long.max_length));
    }
    match inner.and_then(|inner| inner.downcast_ref::<Broken>()) {
        Some(Broken::Overflowed { offset }) => {
            exception(py, STREAMS, "StreamOverflow", (name, *offset))
        }
        Some(Broken::Lost {
            offset,
            length,
            source,
        }) => exception(
            py,
            STREAMS,
            "StreamLost",
            (
                name,
                *offset,
                *length,
                source.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
                source.to_string(),
            ),
        ),
        _ => system(error, format!("{name}: {error}")),
    }
}

/// The exception for a read of `what` whose time is up.
pub(crate) fn read_timeout<'py>(
    stream: &Bound<'py, PyAny>,
    what: &str,
    timeout: Option<Bound<'py, PyAny>>,
) -> PyErr {
    exception(
        stream.py(),
        STREAMS,
        "read_timeout",
        (what, timeout, stream),
    )
}

/// The exception for a child that cannot go on because its output is not read.
pub(crate) fn stalled(py: Python<'_>, error: &Stalled) -> PyErr {
    let streams: Vec<_> = error
        .streams
        .iter()
        .map(|one| (one.name, one.memory_bytes, one.disk_bytes))
        .collect();
    let after = error.after.as_secs_f64();
    let parts = (&error.command, streams, after, error.writing);
    exception(py, STREAMS, "Stalled", parts)
}
