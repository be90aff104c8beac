//! What a program waits for, and why it does not end, as plain values of Python's.

use std::io;

use procwright::explain::{BETWEEN, Diagnosis, Waiting, examine_as_onlooker};
use procwright::process::ProcessError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors;
use crate::report::RawHolder;

/// The parts of a `Waiting`.
pub(crate) type RawWaiting<'a> = (
    &'static str,
    i32,
    &'a str,
    Option<i32>,
    bool,
    Vec<RawHolder<'a>>,
    &'a str,
);

/// The parts of a `Diagnosis`.
pub(crate) type RawDiagnosis<'a> = (
    &'static str,
    &'a str,
    Option<String>,
    Option<RawWaiting<'a>>,
    String,
    String,
);

pub(crate) fn waiting(waiting: &Waiting) -> RawWaiting<'_> {
    let holders = waiting.holders.iter();
    let holders = holders.map(|one| (one.pid, one.name.as_str(), Some((one.start_ticks, None))));
    (
        waiting.kind.name(),
        waiting.pid,
        &waiting.name,
        waiting.fd,
        waiting.terminal,
        holders.collect(),
        &waiting.text,
    )
}

pub(crate) fn diagnosis(diagnosis: &Diagnosis) -> RawDiagnosis<'_> {
    (
        diagnosis.verdict.name(),
        &diagnosis.sentence,
        diagnosis.why(),
        diagnosis.waiting.as_ref().map(waiting),
        diagnosis.text(false),
        diagnosis.json().unwrap_or_default(),
    )
}

/// Why this process does not go on, with all that descends from it, apart from the calling thread.
#[pyfunction]
pub(crate) fn explain_own(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let own = std::process::id().cast_signed();
    let found = py.detach(|| examine_as_onlooker(&[own], BETWEEN));
    let found = found.map_err(|error| errors::system(&error, error.to_string()))?;
    diagnosis(&found).into_pyobject(py)
}

/// The exception of a look at a child.
pub(crate) fn refused(py: Python<'_>, error: &io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::NotFound => errors::process(py, &ProcessError::Gone(None)),
        _ => errors::system(error, error.to_string()),
    }
}
