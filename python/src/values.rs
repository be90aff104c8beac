//! Values that a caller makes and keeps: `Stop`, `Limit`, `Cancel`.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use procwright::error::Invalid;
use procwright::process::{self, Scope, Signal};
use procwright::time::Timeout;
use procwright::{Beyond, spec};
use pyo3::prelude::*;

use crate::errors::invalid;

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
    #[pyo3(signature = (signal=SignalArg::Name("TERM".into()), grace=5.0, scope="tree"))]
    #[pyo3(text_signature = "(signal='TERM', grace=5.0, scope='tree')")]
    fn new(py: Python<'_>, signal: SignalArg, grace: f64, scope: &str) -> PyResult<Stop> {
        let signal = signal.signal().map_err(|e| invalid(py, &e))?;
        let grace = seconds("grace", Some(grace)).map_err(|e| invalid(py, &e))?;
        let scopes = [Scope::Process, Scope::Group, Scope::Tree];
        let Some(scope) = scopes.into_iter().find(|known| known.name() == scope) else {
            return Err(choice(
                py,
                "scope",
                scope,
                "\"process\", \"group\" or \"tree\"",
            ));
        };
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (i32, f64, &'static str)) {
        let this = slf.get();
        let class = slf.get_type().into_any();
        (class, (this.signal, this.grace(), this.scope()))
    }
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
    #[pyo3(signature = (bytes, beyond="ends"))]
    fn new(py: Python<'_>, bytes: i64, beyond: &str) -> PyResult<Limit> {
        let Ok(bytes) = u64::try_from(bytes) else {
            let error = Invalid::new("limit", "is negative", "pass a number of bytes, or None");
            return Err(invalid(py, &error));
        };
        let fails = match beyond {
            "ends" => false,
            "fail" => true,
            other => return Err(choice(py, "beyond", other, "\"ends\" or \"fail\"")),
        };
        Ok(Limit { bytes, fails })
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
    fn new() -> PyResult<Cancel> {
        Ok(Cancel(procwright::Cancel::new()?))
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

/// The exception for a word that is none of `choices`.
pub(crate) fn choice(py: Python<'_>, what: &str, value: &str, choices: &str) -> PyErr {
    let error = Invalid::new(what, format!("is {value:?}"), format!("use {choices}"));
    invalid(py, &error)
}
