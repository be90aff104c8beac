//! Events of runs and children, told to Python.

use std::ops::Deref;
use std::sync::Arc;

use procwright::{BoxError, Event};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::attach::{Attached, attach, later};
use crate::explained;
use crate::raised::Raised;
use crate::report::{self, RawHolder, UNTIL_EXIT};
use crate::taps;
use procwright_os::sync::Mutex;

/// The callable that is told events. None once the garbage collector has found it to be
/// garbage, in a circle with the child.
pub(crate) type EventHook = Arc<HookPlace>;

/// The place of the callable. The core may drop the last reference to it, on a thread that
/// empties the pipes of all children and must not wait for the interpreter lock.
pub(crate) struct HookPlace(Mutex<Option<Py<PyAny>>>);

impl HookPlace {
    pub(crate) fn new(hook: Py<PyAny>) -> EventHook {
        Arc::new(HookPlace(Mutex::new(Some(hook))))
    }

    /// A place with nothing in it.
    pub(crate) fn empty() -> EventHook {
        Arc::new(HookPlace(Mutex::new(None)))
    }
}

impl Deref for HookPlace {
    type Target = Mutex<Option<Py<PyAny>>>;

    fn deref(&self) -> &Mutex<Option<Py<PyAny>>> {
        &self.0
    }
}

impl Drop for HookPlace {
    fn drop(&mut self) {
        if let Some(hook) = self.0.take() {
            later(hook);
        }
    }
}

/// Hands events to Python, on the thread that the core has for them.
///
pub(crate) fn listener(hook: EventHook) -> impl FnMut(&Event) + Send + 'static {
    move |event| {
        let callable = attach(|py| {
            let hook = hook.lock();
            Some(Attached::new(hook.as_ref()?.clone_ref(py)))
        });
        let callable = callable.flatten();
        // No call waits for the hook: dropped, an exception is told by `sys.unraisablehook`.
        drop(callable.map(|callable| tell(&callable, event)));
    }
}

/// Calls `hook` with the parts of an event, as `procwright/_event.py` takes them.
pub(crate) fn tell(hook: &Attached<Py<PyAny>>, event: &Event) -> Result<(), BoxError> {
    let told = attach(|py| {
        let text = event.explain_to(UNTIL_EXIT);
        let args = match event {
            Event::Held {
                command,
                streams,
                holders,
                complete,
                ..
            } => {
                let holders = report::holders(holders);
                ("held", text, command, streams, holders, *complete).into_pyobject(py)?
            }
            Event::Explained {
                command, diagnosis, ..
            } => {
                let nobody = Vec::<RawHolder<'_>>::new();
                let diagnosis = diagnosis.as_ref().ok();
                let diagnosis = diagnosis.map(|found| explained::diagnosis(found));
                ("explained", text, command, "", nobody, true, diagnosis).into_pyobject(py)?
            }
            Event::InputWanted {
                command,
                waiting,
                prompt,
            } => {
                let nobody = Vec::<RawHolder<'_>>::new();
                let waiting = explained::waiting(waiting);
                let kind = "input_wanted";
                (
                    kind,
                    text,
                    command,
                    "",
                    nobody,
                    true,
                    py.None(),
                    waiting,
                    prompt.as_deref(),
                )
                    .into_pyobject(py)?
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
