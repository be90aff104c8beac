//! Events of runs and children, told to Python.

use std::sync::Arc;

use procwright::{BoxError, Event};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::taps::{self, AttachedPy, Raised};
use procwright_os::sync::Mutex;

/// The callable that is told events. None once the garbage collector has found it to be
/// garbage, in a circle with the child.
pub(crate) type EventHook = Arc<Mutex<Option<Py<PyAny>>>>;

/// Hands events to Python, on the thread that the core has for them.
///
/// The hook is a plain `Py`, and no `AttachedPy`, since the garbage collector takes it out of
/// the place that it shares with the child.
pub(crate) fn listener(hook: EventHook) -> impl FnMut(&Event) + Send + 'static {
    move |event| {
        let callable = Python::try_attach(|py| {
            let hook = hook.lock();
            AttachedPy::new(hook.as_ref()?.clone_ref(py)).into()
        });
        let callable: Option<AttachedPy> = callable.flatten();
        // No call waits for the hook: dropped, an exception is told by `sys.unraisablehook`.
        drop(callable.map(|callable| tell(&callable, event)));
    }
}

/// Calls `hook` with the parts of an event, as `procwright/_event.py` takes them.
pub(crate) fn tell(hook: &AttachedPy, event: &Event) -> Result<(), BoxError> {
    let told = Python::try_attach(|py| {
        let Some(hook) = hook.get() else {
            return Ok(());
        };
        let text = event.to_string();
        let args = match event {
            Event::Held {
                command,
                streams,
                holders,
                complete,
            } => {
                let holders = holders.iter().map(|one| (one.pid, &one.name));
                let holders = holders.collect::<Vec<_>>();
                ("held", text, command, streams, holders, *complete).into_pyobject(py)?
            }
            Event::Spilling {
                command, stream, ..
            } => of_stream(py, "spilling", event, command, stream)?,
            Event::Degraded {
                command, stream, ..
            } => of_stream(py, "degraded", event, command, stream)?,
            Event::Dropping {
                command, stream, ..
            } => of_stream(py, "dropping", event, command, stream)?,
            Event::Overflowed {
                command, stream, ..
            } => of_stream(py, "overflowed", event, command, stream)?,
            Event::Missed { command, .. } => of_stream(py, "missed", event, command, "")?,
            _ => PyTuple::new(py, ["other", &text])?,
        };
        taps::call(hook.bind(py), &args).map(drop)
    });
    told.unwrap_or(Ok(())).map_err(Raised::boxed)
}

/// The parts of an event of one stream.
fn of_stream<'py>(
    py: Python<'py>,
    kind: &str,
    event: &Event,
    command: &str,
    stream: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, [kind, &event.fact(), command, stream])
}
