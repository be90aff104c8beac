//! What is set up before a program's first instruction: from the core's table, for the table
//! of `procwright/_setup.py`.

use procwright::Spec;
use procwright::error::Invalid;
use procwright::spec::{SETUP, SetupKind, SetupOption, SetupValue};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::errors::invalid;
use crate::values::{OsBytes, SignalArg};

/// The options: name, kind of value, and what would do for a value that would not.
#[pyfunction]
pub(crate) fn setup_options() -> Vec<(&'static str, &'static str, &'static str)> {
    let kind = |kind| match kind {
        SetupKind::Flag => "flag",
        SetupKind::Number => "number",
        SetupKind::Numbers => "numbers",
        SetupKind::Text => "text",
        SetupKind::Signals => "signals",
        SetupKind::Path => "path",
    };
    let option = |option: &SetupOption| (option.name, kind(option.kind), option.hint);
    SETUP.iter().map(option).collect()
}

/// What is wrong with a value of the right kind, and what would do; None for nothing.
#[pyfunction]
#[pyo3(signature = (name, value, /))]
pub(crate) fn setup_fault(
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<Option<(String, String)>> {
    let mut spec = Spec::new([] as [&str; 0]);
    let fault = set(&mut spec, name, value)?.err();
    Ok(fault.map(|error| (error.problem().to_owned(), error.hint().to_owned())))
}

/// Sets those that were given.
pub(crate) fn apply(
    py: Python<'_>,
    spec: &mut Spec,
    given: &[(String, Bound<'_, PyAny>)],
) -> PyResult<()> {
    for (name, value) in given {
        set(spec, name, value)?.map_err(|error| invalid(py, &error))?;
    }
    Ok(())
}

fn set(spec: &mut Spec, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Result<(), Invalid>> {
    let option = SetupOption::named(name);
    let option = option.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
    let value = match option.kind {
        SetupKind::Flag => SetupValue::Flag(value.extract()?),
        SetupKind::Number => SetupValue::Number(value.extract()?),
        SetupKind::Numbers => SetupValue::Numbers(value.extract()?),
        SetupKind::Text => SetupValue::Text(value.extract()?),
        SetupKind::Path => SetupValue::Path(value.extract::<OsBytes>()?.path()),
        SetupKind::Signals => {
            let signals: Vec<SignalArg> = value.extract()?;
            match signals.iter().map(SignalArg::signal).collect() {
                Ok(signals) => SetupValue::Signals(signals),
                Err(error) => return Ok(Err(error)),
            }
        }
    };
    Ok(option.set(spec, value))
}
