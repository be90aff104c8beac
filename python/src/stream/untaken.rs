//! The streams of a child before the caller takes them.

use std::sync::Arc;

use procwright::stream::{self, MergedReader};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::shared_reader::SharedReader;
use crate::errors::invalid;
use procwright_os::sync::Mutex;

/// The streams of a child that were not taken yet.
///
/// The outputs that were taken are kept as well, so that they are open until they are closed or
/// the child is forgotten: one that is stopped then has its last words taken.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct UntakenStreams {
    /// The command, as errors call it.
    command: String,
    stdin: Mutex<Option<stream::Writer>>,
    outputs: [Mutex<Option<stream::Reader>>; 2],
    merged: Mutex<Option<MergedReader>>,
    taken: Mutex<TakenOutputs>,
}

/// The outputs that were taken.
#[derive(Clone, Default)]
pub(crate) struct TakenOutputs {
    apart: Vec<Arc<SharedReader>>,
    merged: Option<Arc<MergedReader>>,
}

#[pymethods]
impl UntakenStreams {
    #[getter]
    fn has_stdin(&self) -> bool {
        self.stdin.lock().is_some()
    }

    #[getter]
    fn has_stdout(&self) -> bool {
        self.outputs[0].lock().is_some()
    }

    #[getter]
    fn has_stderr(&self) -> bool {
        self.outputs[1].lock().is_some()
    }

    #[getter]
    fn has_merged(&self) -> bool {
        self.merged.lock().is_some()
    }
}

impl UntakenStreams {
    /// Takes the streams out of `child`, which errors call `shown_as`, if it is another's command.
    pub(crate) fn new(child: &mut procwright::Child, shown_as: Option<String>) -> UntakenStreams {
        UntakenStreams {
            command: shown_as.unwrap_or_else(|| child.command_line()),
            stdin: Mutex::new(child.stdin.take()),
            outputs: [child.stdout.take(), child.stderr.take()].map(Mutex::new),
            merged: Mutex::new(child.merged.take()),
            taken: Mutex::default(),
        }
    }

    /// Those of a stage of a pipeline.
    pub(crate) fn of_stage(
        command: String,
        stdin: Option<stream::Writer>,
        outputs: [Option<stream::Reader>; 2],
    ) -> UntakenStreams {
        UntakenStreams {
            command,
            stdin: Mutex::new(stdin),
            outputs: outputs.map(Mutex::new),
            merged: Mutex::new(None),
            taken: Mutex::default(),
        }
    }

    /// The outputs that were taken.
    pub(crate) fn taken(&self) -> TakenOutputs {
        self.taken.lock().clone()
    }

    /// The child's stdin, and what errors call it.
    pub(super) fn take_stdin(&self) -> PyResult<(stream::Writer, String)> {
        let taken = self.stdin.take().ok_or_else(not_there)?;
        Ok((taken, format!("stdin of {}", self.command)))
    }

    /// The two outputs as one, and what errors call it.
    pub(super) fn take_merged(&self) -> PyResult<(Arc<MergedReader>, String)> {
        let taken = Arc::new(self.merged.take().ok_or_else(not_there)?);
        self.taken.lock().merged = Some(Arc::clone(&taken));
        Ok((taken, format!("stdout and stderr of {}", self.command)))
    }

    /// The child's stdout (1) or stderr (2).
    pub(super) fn take_output(&self, py: Python<'_>, number: u8) -> PyResult<Arc<SharedReader>> {
        let (name, place) = match number {
            1 => ("stdout", &self.outputs[0]),
            2 => ("stderr", &self.outputs[1]),
            _ => return Err(not_there()),
        };
        let taken = place.take().ok_or_else(not_there)?;
        let source = SharedReader::new(taken, format!("{name} of {}", self.command));
        let source = source.map_err(|error| invalid(py, &error))?;
        self.taken.lock().apart.push(Arc::clone(&source));
        Ok(source)
    }
}

fn not_there() -> PyErr {
    PyRuntimeError::new_err("there is no such stream, or it was taken")
}
