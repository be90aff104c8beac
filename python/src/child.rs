//! A child and its streams, as `procwright/_child.py` wraps it.

use std::sync::{Arc, Mutex, PoisonError};

use procwright::error::Invalid;
use procwright::stream::MergedReader;
use procwright::{Command, Overflow};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::{invalid, not_started};
use crate::options::Setup;
use crate::process::Handle;
use crate::report::status;
use crate::stream::Source;

/// A program that was started.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Child {
    child: procwright::Child,
    /// As errors call it.
    command: String,
    stdin: Mutex<Option<procwright::stream::Writer>>,
    outputs: [Mutex<Option<procwright::stream::Reader>>; 2],
    merged: Mutex<Option<MergedReader>>,
}

/// Starts a program, and leaves it to the caller.
#[pyfunction]
#[pyo3(signature = (options, overflow, merged, /))]
pub(crate) fn spawn(
    py: Python<'_>,
    options: &Bound<'_, PyDict>,
    overflow: Option<(String, u64, Option<u64>)>,
    merged: bool,
) -> PyResult<Child> {
    let (mut spec, _) = options.extract::<Setup<'_>>()?.spec(py)?;
    spec.merged = merged;
    let overflow = overflow.map(|parts| policy(py, parts)).transpose()?;
    let spawned = py.detach(|| Command::from_spec(spec).spawn_with(overflow));
    let mut child = spawned.map_err(|error| not_started(py, &error))?;
    let words = child.argv().iter().map(|word| word.to_string_lossy());
    let command = words.collect::<Vec<_>>().join(" ");
    Ok(Child {
        stdin: Mutex::new(child.stdin.take()),
        outputs: [
            Mutex::new(child.stdout.take()),
            Mutex::new(child.stderr.take()),
        ],
        merged: Mutex::new(child.merged.take()),
        child,
        command,
    })
}

fn policy(
    py: Python<'_>,
    (policy, memory, disk): (String, u64, Option<u64>),
) -> PyResult<Overflow> {
    Ok(match &*policy {
        "spill" => Overflow::Spill { memory, disk },
        "drop_oldest" => Overflow::DropOldest { memory },
        "drop_newest" => Overflow::DropNewest { memory },
        "fail" => Overflow::Fail { memory },
        other => {
            let problem = format!("is {other:?}");
            let hint = "use \"spill\", \"block\", \"drop_oldest\", \"drop_newest\" or \"fail\"";
            return Err(invalid(py, &Invalid::new("overflow", problem, hint)));
        }
    })
}

#[pymethods]
impl Child {
    /// Its process, to ask about it, to signal it and to wait for it.
    fn process(&self) -> Handle {
        Handle(self.child.process().clone())
    }

    /// Whether it has stdin, stdout, stderr and the two as one that nobody has taken
    /// yet.
    fn streams(&self) -> (bool, bool, bool, bool) {
        let [out, err] = &self.outputs;
        let merged = holds(&self.merged);
        (holds(&self.stdin), holds(out), holds(err), merged)
    }

    /// The parts of a `Status`, none while it is alive. Reaps it.
    fn poll<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let exit = py.detach(|| self.child.try_wait());
        exit.map(|exit| status(py, exit)).transpose()
    }

    /// Pid, name and state of each process that could not be ended.
    fn stop(&self, py: Python<'_>) -> Vec<(i32, String, char)> {
        let survivors = py.detach(|| self.child.stop());
        let survivors = survivors.into_iter();
        survivors
            .map(|one| (one.pid, one.name, one.state))
            .collect()
    }
}

impl Child {
    /// Its stdin, and what to call it.
    pub(crate) fn take_input(&self) -> PyResult<(procwright::stream::Writer, String)> {
        let taken = take(&self.stdin).ok_or_else(nothing)?;
        Ok((taken, format!("stdin of {}", self.command)))
    }

    /// Both outputs as one, and what to call it.
    pub(crate) fn take_merged(&self) -> PyResult<(MergedReader, String)> {
        let taken = take(&self.merged).ok_or_else(nothing)?;
        Ok((taken, format!("stdout and stderr of {}", self.command)))
    }

    /// Its stdout (1) or stderr (2).
    pub(crate) fn take_output(&self, py: Python<'_>, number: u8) -> PyResult<Arc<Source>> {
        let (name, place) = match number {
            1 => ("stdout", &self.outputs[0]),
            2 => ("stderr", &self.outputs[1]),
            _ => return Err(nothing()),
        };
        let taken = take(place).ok_or_else(nothing)?;
        let source = Source::new(taken, format!("{name} of {}", self.command));
        source.map_err(|error| invalid(py, &error))
    }
}

fn holds<T>(place: &Mutex<Option<T>>) -> bool {
    let place = place.lock().unwrap_or_else(PoisonError::into_inner);
    place.is_some()
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    place.take()
}

fn nothing() -> PyErr {
    PyRuntimeError::new_err("there is no such stream, or it was taken")
}
