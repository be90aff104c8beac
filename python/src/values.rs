//! Values that a caller makes and keeps: `Stop`, `Limit`, `Cancel`.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use procwright::error::{Invalid, SpawnError, Step};
use procwright::process::{self, Scope, Signal};
use procwright::time::Timeout;
use procwright::{Beyond, duplicate_fd, spec};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyInt, PyTuple};
use rustix::io::Errno;

use crate::arguments::{Argument, bad_type, bytes, choice as choice_of, limit_of, signal_called};
use crate::errors::{self, invalid, not_duplicated, start_refused};
use crate::python;

/// Bytes that are a string of the system's.
#[derive(FromPyObject)]
pub(crate) struct OsBytes(PyBackedBytes);

impl OsBytes {
    pub(crate) fn os(&self) -> OsString {
        OsString::from_vec(self.0.to_vec())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.os().into()
    }
}

/// A signal by its name or number.
#[derive(FromPyObject)]
pub(crate) enum SignalArg {
    #[pyo3(annotation = "int")]
    Number(i32),
    #[pyo3(annotation = "str")]
    Name(String),
}

impl SignalArg {
    pub(crate) fn signal(&self) -> Result<Signal, Invalid> {
        match self {
            SignalArg::Number(number) => Signal::new(*number),
            SignalArg::Name(name) => name.parse(),
        }
    }
}

/// A number of seconds under the name `what`.
pub(crate) fn seconds(what: &str, secs: Option<f64>) -> Result<Timeout, Invalid> {
    secs.map_or(Ok(Timeout::NEVER), |secs| {
        Timeout::from_secs_f64(secs).map_err(|_| {
            Invalid::new(
                what,
                "is not a number (NaN)",
                "pass seconds, infinity or None for no limit",
            )
        })
    })
}

/// How a run is ended when it has to be.
#[pyclass(module = "procwright", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stop {
    signal: i32,
    grace: Duration,
    scope: Scope,
}

#[pymethods]
impl Stop {
    #[new]
    #[pyo3(signature = (
        signal=Signal::TERM, grace=Timeout::from(GRACE), scope=Scope::Tree, *words, **unknown
    ))]
    #[pyo3(text_signature = "(signal='TERM', grace=5.0, scope='tree')")]
    fn new(
        #[pyo3(from_py_with = signal)] signal: Signal,
        #[pyo3(from_py_with = grace)] grace: Timeout,
        #[pyo3(from_py_with = scope)] scope: Scope,
        words: &Bound<'_, PyTuple>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stop> {
        refuse_more("Stop", &["signal", "grace", "scope"], words, unknown)?;
        Ok(Stop {
            signal: signal.number(),
            grace: grace.duration().unwrap_or(Duration::MAX),
            scope,
        })
    }

    #[getter]
    fn signal(&self) -> String {
        self.stop().signal().name().into_owned()
    }

    #[getter]
    fn grace(&self) -> f64 {
        match self.grace {
            Duration::MAX => f64::INFINITY,
            grace => grace.as_secs_f64(),
        }
    }

    #[getter]
    fn scope(&self) -> &'static str {
        self.scope.name()
    }

    fn __repr__(&self) -> String {
        let (signal, scope) = (self.signal(), self.scope());
        format!(
            "Stop({signal:?}, grace={:?}, scope={scope:?})",
            self.grace()
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String, f64, &'static str)) {
        let this = slf.get();
        let class = slf.get_type().into_any();
        (class, (this.signal(), this.grace(), this.scope()))
    }
}

/// The grace unless another is given.
const GRACE: Duration = Duration::from_secs(5);

/// A bare number is none: who writes `Stop(5)` means seconds, and `Stop(2)` may mean either.
fn signal(given: Argument<'_, '_>) -> PyResult<Signal> {
    if given.is_exact_instance_of::<PyInt>() {
        let hint = "a number may be a signal or seconds; pass a signal as \"TERM\" or \
                    signal.SIGTERM, and seconds as grace=5";
        return Err(bad_type("signal", given, hint));
    }
    signal_called("signal", given)
}

/// None is no limit, as of every time: no SIGKILL ever.
fn grace(given: Argument<'_, '_>) -> PyResult<Timeout> {
    limit_of("grace", given)
}

fn scope(given: Argument<'_, '_>) -> PyResult<Scope> {
    let known = [Scope::Process, Scope::Group, Scope::Tree].map(|scope| (scope.name(), scope));
    choice_of("scope", given, &known)
}

fn limit_bytes(given: Argument<'_, '_>) -> PyResult<u64> {
    bytes("bytes", given).map(|bytes| bytes as u64)
}

/// True if more output than that is a failure.
fn beyond(given: Argument<'_, '_>) -> PyResult<bool> {
    choice_of("beyond", given, &[("ends", false), ("fail", true)])
}

impl Stop {
    pub(crate) fn stop(&self) -> process::Stop {
        let stop = process::Stop::new()
            .with_grace(self.grace)
            .with_scope(self.scope);
        // Checked when this was made.
        Signal::new(self.signal).map_or(stop, |signal| stop.with_signal(signal))
    }
}

/// How much output of each stream is kept.
#[pyclass(module = "procwright", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Limit {
    #[pyo3(get)]
    bytes: u64,
    fails: bool,
}

#[pymethods]
impl Limit {
    #[new]
    #[pyo3(signature = (bytes, beyond=false, *words, **unknown))]
    #[pyo3(text_signature = "(bytes, beyond='ends')")]
    fn new(
        #[pyo3(from_py_with = limit_bytes)] bytes: u64,
        #[pyo3(from_py_with = beyond)] beyond: bool,
        words: &Bound<'_, PyTuple>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Limit> {
        refuse_more("Limit", &["bytes", "beyond"], words, unknown)?;
        Ok(Limit {
            bytes,
            fails: beyond,
        })
    }

    #[getter]
    fn beyond(&self) -> &'static str {
        match self.fails {
            true => "fail",
            false => "ends",
        }
    }

    fn __repr__(&self) -> String {
        format!("Limit({}, {:?})", self.bytes, self.beyond())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (u64, &'static str)) {
        let this = slf.get();
        (slf.get_type().into_any(), (this.bytes, this.beyond()))
    }
}

impl Limit {
    pub(crate) fn limit(&self) -> spec::Limit {
        spec::Limit {
            bytes: self.bytes,
            beyond: match self.fails {
                true => Beyond::Fail,
                false => Beyond::HeadAndTail,
            },
        }
    }
}

/// Ends runs from another thread. Can be waited for with `wait`.
#[pyclass(module = "procwright", frozen)]
pub(crate) struct Cancel(procwright::Cancel);

#[pymethods]
impl Cancel {
    #[new]
    #[pyo3(signature = (*words, **unknown), text_signature = "()")]
    fn new(words: &Bound<'_, PyTuple>, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<Cancel> {
        refuse_more("Cancel", &[], words, unknown)?;
        let made = procwright::Cancel::new();
        let refused = |error| errors::system(&error, format!("cannot make a Cancel: {error}"));
        made.map(Cancel).map_err(refused)
    }

    /// Stops every run that has this handle. Returns at once.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// True once `cancel()` has been called.
    #[getter]
    fn cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// The descriptor that is readable once `cancel()` has been called. Not to be
    /// read from.
    fn readiness_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }

    fn __repr__(&self) -> &'static str {
        match self.cancelled() {
            true => "<procwright.Cancel, cancelled>",
            false => "<procwright.Cancel>",
        }
    }
}

impl Cancel {
    pub(crate) fn handle(&self) -> procwright::Cancel {
        self.0.clone()
    }
}

/// Refuses what the constructor of a class does not take, with what to write in its place.
fn refuse_more(
    class: &str,
    known: &[&str],
    words: &Bound<'_, PyTuple>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    if words.is_empty() && unknown.is_none() {
        return Ok(());
    }
    let given = (class, known.to_vec(), words, unknown);
    let (module, function) = ("procwright._unknown", "refused_by_new");
    Err(python::exception(words.py(), module, function, given))
}

/// The exception for a word that is none of `choices`.
pub(crate) fn choice(py: Python<'_>, what: &str, value: &str, choices: &str) -> PyErr {
    let error = Invalid::new(what, format!("is {value:?}"), format!("use {choices}"));
    invalid(py, &error)
}

/// A duplicate, so that the caller may close the number meanwhile.
pub(crate) fn duplicated(py: Python<'_>, name: &str, number: RawFd) -> PyResult<OwnedFd> {
    let shown = format!("{name}={number}");
    match duplicate_fd(number) {
        Ok(fd) => Ok(fd),
        // That there are none left is no fault of the number.
        Err(error) if error.raw_os_error() != Some(Errno::BADF.raw_os_error()) => {
            let source = SpawnError::new(Step::Dup, shown, error);
            Err(start_refused(py, &[], source))
        }
        Err(error) => Err(not_duplicated(py, &error, &shown)),
    }
}
