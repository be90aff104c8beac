//! `map`: many commands, so many at a time.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

use procwright::map::{self, Ended, Error, Joblog, Journal, JournalError, Outcome, Past, Step};
use procwright::map::{Remote, Running};
use procwright::{BoxError, Spec, Tap};
use procwright_os::sync::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::attach::{Attached, attach, drop_deferred, expect_calls};
use crate::bytes::BytesMemory;
use crate::errors::{invalid, not_started, system};
use crate::events::tell;
use crate::options::CommonOptions;
use crate::python::exception;
use crate::raised::{Raised, exception_of};
use crate::report::status;
use crate::run;
use crate::signals::{on_main_thread, while_stopping};
use crate::taps::{ChunkTaps, call};
use crate::values::{Cancel, OsBytes, seconds};

/// The module of the map's exceptions.
const MODULE: &str = "procwright._map_errors";

/// The rules of a map, as `procwright/_map.py` makes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct MapOptions<'py> {
    parallel: Option<usize>,
    ahead: Option<usize>,
    ordered: bool,
    stop_after_failures: Option<u64>,
    deadline: Option<f64>,
    cancel: Option<Bound<'py, Cancel>>,
    journal: Option<JournalOptions>,
    on_event: Py<PyAny>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct JournalOptions {
    path: OsBytes,
    resume: bool,
    rerun_failed: bool,
    rerun_unknown: bool,
    sync: bool,
    joblog: Option<OsBytes>,
}

/// Begins to run what `next` gives: options of a run as a dictionary, until it raises
/// StopIteration. It is called on threads of the map, one at a time.
#[pyfunction]
#[pyo3(name = "map", signature = (options, next, /))]
pub(crate) fn map_commands(
    py: Python<'_>,
    options: &Bound<'_, PyDict>,
    next: Py<PyAny>,
) -> PyResult<Map> {
    let options: MapOptions<'_> = options.extract()?;
    expect_calls(py)?;
    let hook = Arc::new(Attached::new(options.on_event));
    let taps = Arc::new(WaitingTaps::default());
    let commands = Commands {
        next: Attached::new(next),
        given: 0,
        taps: Arc::clone(&taps),
    };
    let tap = Arc::clone(&taps);
    let mut map = map::Map::fallible(commands)
        .tap_with(move |index, _| tap.take(index))
        // Copied while this thread has the interpreter lock, with which variables are set.
        .env_replace(std::env::vars_os())
        .on_event(move |_, event| tell(&hook, event));
    if let Some(parallel) = options.parallel {
        map = map.parallel(parallel);
    }
    if let Some(ahead) = options.ahead {
        map = map.ahead(ahead);
    }
    if options.ordered {
        map = map.ordered();
    }
    if let Some(failures) = options.stop_after_failures.and_then(NonZero::new) {
        map = map.stop_after_failures(failures);
    }
    let deadline = seconds("deadline", options.deadline).map_err(|error| invalid(py, &error))?;
    map = map.deadline(deadline);
    if let Some(cancel) = &options.cancel {
        map = map.cancel_on(&cancel.get().handle());
    }
    let journal = options.journal;
    let running = py.detach(move || {
        if let Some(journal) = journal {
            map = map.journal(journal.open()?);
        }
        map.start_into::<BytesMemory>()
    });
    let running = running.map_err(|error| failed(py, error))?;
    Ok(Map {
        remote: running.remote(),
        running: Mutex::new(Some(running)),
        taps,
    })
}

impl JournalOptions {
    fn open(&self) -> Result<Journal, JournalError> {
        let mut journal = match self.resume {
            true => Journal::resume(self.path.path())?,
            false => Journal::create(self.path.path())?,
        };
        if self.rerun_failed {
            journal = journal.rerun_failed();
        }
        if self.rerun_unknown {
            journal = journal.rerun_unknown();
        }
        if self.sync {
            journal = journal.synced();
        }
        if let Some(path) = &self.joblog {
            journal = journal.joblog(Joblog::open(path.path(), self.resume)?);
        }
        Ok(journal)
    }
}

/// The callbacks of commands that have not been started, by their places.
#[derive(Default)]
struct WaitingTaps(Mutex<HashMap<u64, ChunkTaps>>);

impl WaitingTaps {
    fn take(&self, index: u64) -> Option<Box<dyn Tap>> {
        let taps = self.0.lock().remove(&index)?;
        Some(Box::new(taps))
    }
}

/// The commands, from a callable that gives one with each call.
struct Commands {
    next: Attached<Py<PyAny>>,
    /// How many it has given.
    given: u64,
    taps: Arc<WaitingTaps>,
}

impl Iterator for Commands {
    type Item = Result<Spec, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        attach(|py| match call(self.next.bind(py), &PyTuple::empty(py)) {
            Ok(options) => Some(self.spec(py, &options).map_err(Raised::boxed)),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => None,
            Err(error) => Some(Err(Raised::boxed(error))),
        })
        .flatten()
    }
}

impl Commands {
    /// The spec of a command, whose environment is that of the map unless it has one. Its taps
    /// wait for its start.
    fn spec(&mut self, py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<Spec> {
        let mut common: CommonOptions<'_> = options.extract()?;
        let (spec, _) = common.spec_without_environment(py)?;
        let taps = common.take_taps()?.into_iter();
        let taps: Vec<_> = taps
            .map(|(stream, _, callable)| (stream, callable))
            .collect();
        if !taps.is_empty() {
            self.taps.0.lock().insert(self.given, ChunkTaps(taps));
        }
        self.given += 1;
        Ok(spec)
    }
}

/// A map under way.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Map {
    /// None once closed. No call waits for this lock: one that finds it taken is in a signal
    /// handler of the very wait, or on another thread.
    running: Mutex<Option<Running<BytesMemory>>>,
    remote: Remote<BytesMemory>,
    /// Those of commands that were not run are left in it.
    taps: Arc<WaitingTaps>,
}

/// A command that has ended: its place, what it is, its parts, its line, and the place of the
/// failure that has ended the map, where it is that one or was stopped for it.
type Come<'py> = (u64, &'static str, Bound<'py, PyAny>, String, Option<u64>);

#[pymethods]
impl Map {
    /// The next result; none at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Come<'py>>> {
        let Some(mut place) = self.running.try_lock() else {
            return Err(PyRuntimeError::new_err(
                "a result of this map is being waited for already",
            ));
        };
        let Some(running) = place.as_mut() else {
            return Ok(None);
        };
        let step = match py.detach(|| running.try_next()) {
            Some(step) => Ok(step),
            None => wait(py, running),
        };
        drop_deferred(py);
        match step {
            Ok(Step::Ended(ended)) => {
                drop(self.taps.take(ended.index));
                come(py, ended).map(Some)
            }
            Ok(Step::Failed(error)) => {
                *place = None;
                Err(failed(py, error))
            }
            Ok(_) => {
                *place = None;
                Ok(None)
            }
            Err(error) => {
                // A handler has raised, as that of Ctrl-C does: nothing is left running.
                if let Some(running) = place.take() {
                    end(py, running, &self.remote);
                }
                Err(error)
            }
        }
    }

    /// The failure that has ended the map, if its turn has not come: in that it comes once more, as
    /// "taken".
    fn take_cause<'py>(&self, py: Python<'py>) -> PyResult<Option<Come<'py>>> {
        let mut place = self.running.try_lock();
        let running = place.as_mut().and_then(|place| place.as_mut());
        let taken = running.and_then(|running| py.detach(|| running.take_cause()));
        taken.map(|ended| come(py, ended)).transpose()
    }

    /// Starts nothing more, and stops what runs. Returns at once.
    fn stop(&self) {
        self.remote.stop();
    }

    /// Stops what runs, and returns when it has ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut place) = self.running.try_lock() else {
            self.remote.stop();
            return Ok(());
        };
        let running = place.take();
        drop(place);
        match running.map(|running| end(py, running, &self.remote)) {
            Some(Some(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// How far it is, as counts by their names, and what has stopped it.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = self.remote.progress();
        let dict = PyDict::new(py);
        dict.set_item("taken", progress.taken)?;
        dict.set_item("running", progress.running)?;
        dict.set_item("succeeded", progress.succeeded)?;
        dict.set_item("failed", progress.failed)?;
        dict.set_item("stopped", progress.stopped)?;
        dict.set_item("succeeded_before", progress.succeeded_before)?;
        dict.set_item("failed_before", progress.failed_before)?;
        dict.set_item("unknown", progress.unknown)?;
        dict.set_item("all_taken", progress.all_taken)?;
        let by = self.remote.stopped_by().map(map::StoppedBy::name);
        dict.set_item("stopped_by", by)?;
        Ok(dict)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let Some(running) = self.running.get_mut().take() else {
            return;
        };
        // What runs may need the interpreter lock to end. Once the interpreter goes down, nobody
        // gets it any more.
        self.remote.stop();
        let mut running = Some(running);
        let _ = Python::try_attach(|py| py.detach(|| drop(running.take())));
        if let Some(running) = running {
            self.remote.kill();
            std::mem::forget(running);
        }
    }
}

/// Waits for what comes next. Signal handlers run meanwhile; if one raises, that is the error.
fn wait(py: Python<'_>, running: &mut Running<BytesMemory>) -> PyResult<Step<BytesMemory>> {
    use std::os::fd::AsFd as _;
    let refused = |error: std::io::Error| system(&error, format!("cannot wait: {error}"));
    let waited = on_main_thread(py, refused, |wakeup, pipe| {
        loop {
            match py.detach(|| running.next_unless(pipe.as_fd())) {
                Some(step) => return Ok(step),
                None => wakeup.run_handlers()?,
            }
        }
    })?;
    Ok(waited.unwrap_or_else(|| py.detach(|| until_next(running))))
}

fn until_next(running: &mut Running<BytesMemory>) -> Step<BytesMemory> {
    loop {
        if let Some(step) = running.next_within(None) {
            return step;
        }
    }
}

/// Stops what runs, and returns when it has ended. A handler that raises ends the grace, and its
/// exception is returned.
fn end(
    py: Python<'_>,
    mut running: Running<BytesMemory>,
    remote: &Remote<BytesMemory>,
) -> Option<PyErr> {
    use std::os::fd::AsFd as _;
    remote.stop();
    let ended = while_stopping(py, |signals| {
        let mut raised = None;
        if let Some((wakeup, pipe)) = signals {
            loop {
                match running.next_unless(pipe.as_fd()) {
                    Some(Step::Ended(_)) => {}
                    Some(_) => break,
                    None => {
                        if let Err(error) = wakeup.run_handlers() {
                            remote.kill();
                            raised = Some(error);
                        }
                    }
                }
            }
        }
        drop(running);
        raised
    });
    match ended {
        Ok(raised) => raised,
        Err(error) => Some(error),
    }
}

fn come(py: Python<'_>, ended: Ended<BytesMemory>) -> PyResult<Come<'_>> {
    let line = ended.summary();
    let (kind, parts) = match ended.outcome {
        Outcome::Ran(collected) => ("ran", run::result(py, *collected, &[])?.into_any()),
        Outcome::NotStarted(error) => {
            let error = not_started(py, &error).into_value(py);
            ("not_started", error.into_bound(py).into_any())
        }
        Outcome::Before(past) => ("before", parts(py, &past)?),
        Outcome::Unknown(past) => ("unknown", parts(py, &past)?),
        Outcome::Taken => ("taken", py.None().into_bound(py)),
        _ => ("unknown", py.None().into_bound(py)),
    };
    Ok((ended.index, kind, parts, line, ended.cause))
}

/// The parts of a `Past`.
fn parts<'py>(py: Python<'py>, past: &Past) -> PyResult<Bound<'py, PyAny>> {
    let end = past.end.as_ref();
    let status = past.status().map(|exit| status(py, exit)).transpose()?;
    let parts = (
        past.started_at,
        end.map(|end| end.success),
        end.map(|end| end.duration.as_secs_f64()),
        end.map(|end| &*end.words),
        status,
    );
    Ok(parts.into_pyobject(py)?.into_any())
}

/// The exception for an error of the map.
fn failed(py: Python<'_>, error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Invalid(error) => invalid(py, &error),
        Error::Resources(error) => system(&error, text),
        Error::Input(error) => exception_of(py, error)
            .unwrap_or_else(|error| PyRuntimeError::new_err(error.to_string())),
        Error::Journal(JournalError::Io { source, .. }) => {
            let errno = source.raw_os_error().unwrap_or(0);
            exception(py, MODULE, "JournalError", (text, errno))
        }
        Error::Journal(_) => exception(py, MODULE, "JournalError", (text,)),
        _ => PyRuntimeError::new_err(text),
    }
}
