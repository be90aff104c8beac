//! Events of runs and children, told to Python.

use std::sync::{Arc, mpsc};

use procwright::{BoxError, Event};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::taps::{self, AttachedPy};
use procwright_os::sync::Mutex;

/// The callable that is told events. None once the garbage collector has found it to be
/// garbage, in a circle with the child.
pub(crate) type EventHook = Arc<Mutex<Option<Py<PyAny>>>>;

/// Hands events to Python on a thread of its own, which starts with the first: the core's
/// thread empties the pipes of all children, and must not wait for the interpreter lock.
///
/// The hook is a plain `Py`, and no `AttachedPy`, for this reason, too: the core's thread may
/// drop the last reference, and PyO3 leaves that to the next thread that has the lock.
pub(crate) fn listener(hook: EventHook) -> impl Fn(&Event) + Send + Sync + 'static {
    let (send, receive) = mpsc::channel::<Event>();
    let waiting = Mutex::new(Some((receive, hook)));
    move |event| {
        if let Some((receive, hook)) = waiting.take() {
            let thread = std::thread::Builder::new().name("procwright-events".into());
            // Events are not told if no thread can be had; the figures have them all the same.
            let _ = thread.spawn(move || {
                while let Ok(event) = receive.recv() {
                    let callable = Python::try_attach(|py| {
                        let hook = hook.lock();
                        AttachedPy::new(hook.as_ref()?.clone_ref(py)).into()
                    });
                    let told = callable
                        .flatten()
                        .and_then(|callable: AttachedPy| Some(tell(callable.get()?, &event)));
                    if let Some(Err(error)) = told {
                        unraisable(error);
                    }
                }
            });
        }
        let _ = send.send(event.clone());
    }
}

/// Reports the error of a callback for which no call waits, by `sys.unraisablehook`.
fn unraisable(error: BoxError) {
    let _ = Python::try_attach(|py| match error.downcast::<PyErr>() {
        Ok(error) => error.write_unraisable(py, None),
        Err(error) => PyRuntimeError::new_err(error.to_string()).write_unraisable(py, None),
    });
}

/// Calls `hook` with the parts of an event, as `procwright/_event.py` takes them.
pub(crate) fn tell(hook: &Py<PyAny>, event: &Event) -> Result<(), BoxError> {
    let told = Python::try_attach(|py| {
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
            _ => PyTuple::new(py, ["other", &text])?,
        };
        taps::call(hook.bind(py), &args).map(drop)
    });
    told.unwrap_or(Ok(())).map_err(BoxError::from)
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
