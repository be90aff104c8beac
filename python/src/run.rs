//! The one function.

use procwright::{BoxError, Collected, Command, Event, Failure, Memory};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bytes::BytesMemory;
use crate::errors::{not_started, strerror};
use crate::options::{Options, Setup};
use crate::signals::{Bell, Signals};
use crate::taps::{self, Chunks, Pieces};
use crate::{report, values};

/// Runs a program.
///
/// The interpreter lock is free all the while but to grow large captures, to run
/// signal handlers, and for callbacks.
#[pyfunction]
#[pyo3(signature = (options, /))]
pub(crate) fn run<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut spec, next) = options.extract::<Setup<'_>>()?.spec(py)?;
    let options: Options<'_> = options.extract()?;
    options.complete(py, &mut spec)?;
    let cancel = options.cancel.as_ref().map(|cancel| cancel.get());
    let cancel = cancel.map(values::Cancel::handle);
    let Options {
        tee,
        taps,
        on_event,
        ..
    } = options;
    let mut signals = Signals::lend(py, &Bell::new()?)?;
    let watched = signals.as_mut();
    let outcome = py.detach(move || {
        let mut command = Command::from_spec(spec).on_event(move |event| tell(&on_event, event));
        if let Some(cancel) = &cancel {
            command = command.cancel_on(cancel);
        }
        if let Some(next) = next {
            command = command.stdin_iter(Pieces::new(next));
        }
        for (stream, by_line, callable) in taps {
            command = match (stream, by_line) {
                (1, true) => command.on_stdout_line(taps::lines(callable)),
                (2, true) => command.on_stderr_line(taps::lines(callable)),
                _ => command.tap_stream(stream, Box::new(Chunks::new(callable))),
            };
        }
        if tee {
            command = command.tee().map_err(Unrun::Tee)?;
        }
        if let Some(signals) = watched {
            command = command.watch(signals);
        }
        command.run_into::<BytesMemory>().map_err(Unrun::Core)
    });
    if let Some(signals) = signals {
        signals.restore(py);
    }
    match outcome {
        Ok(collected) => result(py, collected, tee),
        Err(Unrun::Core(error)) => Err(not_started(py, &error)),
        Err(Unrun::Tee(error)) => Err(error.into()),
    }
}

/// Why nothing was run.
enum Unrun {
    Core(procwright::Error),
    Tee(std::io::Error),
}

fn result(
    py: Python<'_>,
    collected: Collected<BytesMemory>,
    teed: bool,
) -> PyResult<Bound<'_, PyDict>> {
    let Collected {
        report,
        stdout,
        stderr,
        merged,
        failure,
        ..
    } = collected;
    let dict = report::dict(py, &report)?;
    // What was shown already is not said again.
    let last_words = match report.is_of_a_terminal() {
        true => &stdout,
        false => &stderr,
    };
    let shown = last_words
        .as_ref()
        .filter(|_| !teed)
        .map_or(&[][..], Memory::as_bytes);
    dict.set_item("explanation", report.explain(shown))?;
    for (name, data) in [("stdout", stdout), ("stderr", stderr)] {
        let data = data.map(|data| data.into_bytes(py)).transpose()?;
        dict.set_item(name, data)?;
    }
    let merged = merged.map(|segments| {
        let segments = segments.iter();
        segments
            .map(|one| (one.stream, one.bytes))
            .collect::<Vec<_>>()
    });
    dict.set_item("merged", merged)?;
    let (error, errno) = match failure {
        None => (None, None),
        Some(Failure::Foreign(what, error)) => match error.downcast::<PyErr>() {
            Ok(error) => (Some(error.into_value(py).into_any()), None),
            // A panic of ours.
            Err(error) => {
                let text = format!("{what} of {} failed: {error}", report.command());
                let error = pyo3::exceptions::PyRuntimeError::new_err(text);
                (Some(error.into_value(py).into_any()), None)
            }
        },
        Some(Failure::Io(error)) => {
            let errno = error.raw_os_error().unwrap_or(0);
            (None, Some((errno, strerror(py, errno, &error)?)))
        }
        Some(_) => (None, Some((0, "unknown".to_owned()))),
    };
    dict.set_item("error", error)?;
    dict.set_item("io_error", errno)?;
    dict.set_item("summary", report.summary())?;
    Ok(dict)
}

/// Hands an event to Python.
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

fn of_stream<'py>(
    py: Python<'py>,
    kind: &str,
    event: &Event,
    command: &str,
    stream: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, [kind, &event.fact(), command, stream])
}
