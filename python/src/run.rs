//! `run`: a program from its start to its result.

use std::io;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use procwright::error::{SpawnError, Step};
use procwright::{BoxError, Collected, Command, Error, Failure, Memory, StdStream, Stdin};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustix::io::Errno;

use crate::attach::{Attached, drop_deferred, expect_calls};
use crate::bytes::BytesMemory;
use crate::errors::{self, not_started, strerror, system};
use crate::events::tell;
use crate::options::{CommonOptions, RunOptions};
use crate::raised::exception_of;
use crate::report::UNTIL_EXIT;
use crate::signals::{WakePipe, WakeupFd};
use crate::taps::{ChunkTap, StdinPieces, line_callback};
use crate::tee::{self, Tee};
use crate::{report, stream, values};

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
    let mut common: CommonOptions<'_> = options.extract()?;
    let (spec, next) = common.spec(py)?;
    let tees = common.tees(py)?;
    let taps = common.take_taps()?;
    // Kept in this frame as well, which has the lock when it drops it; the core has not. A hook
    // that is left behind is dropped by its thread.
    let on_event = Arc::new(Attached::new(common.on_event));
    let hook = Arc::clone(&on_event);
    let options: RunOptions = options.extract()?;
    let cancel = common.cancel.as_ref().map(|cancel| cancel.get());
    let cancel = cancel.map(values::Cancel::handle);
    let framing = options.framing();
    let input_wanted = common.input_wanted;
    let explain_after = options.explain_after();
    let explain_after = explain_after.map_err(|error| errors::invalid(py, &error))?;
    let shown: Vec<_> = tees.iter().filter_map(Tee::shown).collect();
    if next.is_some() || !taps.is_empty() {
        expect_calls(py)?;
    }
    let command = spec.argv.clone();
    let refused = |step, object: &str, error| {
        errors::start_refused(py, &command, SpawnError::new(step, object, error))
    };
    let pipe = WakePipe::new().map_err(|error| refused(Step::Pipe, "", error))?;
    let mut wakeup = WakeupFd::lend(py, &pipe)?;
    let watched = wakeup.as_mut();
    let next = next.map(StdinPieces::new);
    // Kept here for the same reason.
    let input = match &spec.stdin {
        Stdin::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    };
    let outcome = py.detach(move || {
        let mut command = Command::from_spec(spec)
            .on_event(move |event| tell(&hook, event))
            .until_exit_written_as(UNTIL_EXIT);
        command = command.line_framing(framing);
        if let Some(after) = explain_after {
            command = command.explain_after(after);
        }
        if input_wanted {
            command = command.input_wanted();
        }
        if let Some(cancel) = &cancel {
            command = command.cancel_on(cancel);
        }
        if let Some(next) = next {
            command = command.stdin_iter(next);
        }
        for (stream, by_line, callable) in taps {
            command = match (stream, by_line) {
                (StdStream::Stdout, true) => command.on_stdout_line(line_callback(callable)),
                (StdStream::Stderr, true) => command.on_stderr_line(line_callback(callable)),
                (stream, false) => command.tap_stream(stream, Box::new(ChunkTap::new(callable))),
            };
        }
        command = tee::add_all(command, tees).map_err(NotRun::Tee)?;
        if let Some(wakeup) = watched {
            command = command.watch(wakeup);
        }
        command.run_into::<BytesMemory>().map_err(NotRun::Core)
    });
    if let Some(wakeup) = wakeup {
        wakeup.restore(py);
    }
    drop((on_event, input));
    drop_deferred(py);
    match outcome {
        Ok(collected) => result(py, collected, &shown),
        Err(NotRun::Core(Error::Forked { command, source })) => Err(forked(py, command, source)),
        Err(NotRun::Core(error)) => Err(not_started(py, &error)),
        Err(NotRun::Tee(error)) => Err(refused(Step::Dup, tee::OWN, error)),
    }
}

/// Why nothing was run.
enum NotRun {
    Core(Error),
    Tee(io::Error),
}

/// The exception of the call in a fork that a signal handler has made and returned in: what
/// the handler has raised there, if it has.
fn forked(py: Python<'_>, command: String, source: Option<BoxError>) -> PyErr {
    let source = match source.map(|error| exception_of(py, error)) {
        Some(Ok(raised)) => return raised,
        Some(Err(error)) => Some(error),
        None => None,
    };
    let error = io::Error::from(Errno::CHILD);
    system(&error, Error::Forked { command, source }.to_string())
}

pub(crate) fn result<'py>(
    py: Python<'py>,
    collected: Collected<BytesMemory>,
    shown: &[StdStream],
) -> PyResult<Bound<'py, PyDict>> {
    let Collected {
        report,
        stdout,
        stderr,
        merged,
        failure,
        ..
    } = collected;
    let dict = report::dict(py, &report)?;
    // Output that `tee` has shown is not shown again.
    let (of, last_words) = match report.last_words_of {
        StdStream::Stdout => (StdStream::Stdout, &stdout),
        StdStream::Stderr => (StdStream::Stderr, &stderr),
    };
    let untold = last_words
        .as_ref()
        .filter(|_| !shown.contains(&of))
        .map_or(&[][..], Memory::as_bytes);
    dict.set_item("explanation", report.explain_to(untold, UNTIL_EXIT))?;
    for (name, data) in [("stdout", stdout), ("stderr", stderr)] {
        let data = data.map(|data| data.into_bytes(py)).transpose()?;
        dict.set_item(name, data)?;
    }
    let merged = merged.map(|segments| {
        let segments = segments.iter();
        segments
            .map(|one| {
                let at = one.at.duration_since(UNIX_EPOCH).unwrap_or_default();
                (one.stream.fd(), one.bytes, one.ambiguous, at.as_secs_f64())
            })
            .collect::<Vec<_>>()
    });
    dict.set_item("merged", merged)?;
    let (error, errno) = match failure {
        None => (None, None),
        Some(failure) => failure_of(py, failure, &report.command())?,
    };
    dict.set_item("error", error)?;
    dict.set_item("io_error", errno)?;
    Ok(dict)
}

/// What is raised: an exception, or the number and the words of the system's answer.
type Raised = (Option<Py<PyAny>>, Option<(i32, String)>);

/// What a failure that ended `command` is to raise.
pub(crate) fn failure_of(py: Python<'_>, failure: Failure, command: &str) -> PyResult<Raised> {
    Ok(match failure {
        Failure::Foreign(what, error) => {
            let raised = exception_of(py, error).unwrap_or_else(|error| {
                if let Some(error) = error.downcast_ref::<io::Error>() {
                    // A line is too long.
                    return stream::failed(py, error, &format!("the output of {command}"));
                }
                // A panic of ours.
                let text = format!("{what} of {command} failed: {error}");
                pyo3::exceptions::PyRuntimeError::new_err(text)
            });
            (Some(raised.into_value(py).into_any()), None)
        }
        Failure::Io(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            (None, Some((errno, strerror(py, errno, &error)?)))
        }
        _ => (None, Some((0, "unknown".to_owned()))),
    })
}
