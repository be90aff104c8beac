//! A callable of the user's between two programs of a pipeline, on a thread of the core.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use procwright::BoxError;
use procwright::pipeline::{StageInput, StageOutput};
use procwright_os::sync::Mutex;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rustix::io::Errno;

use crate::attach::{Attached, attach};
use crate::errors::{strerror, system};
use crate::raised::Raised;
use crate::taps::call;

/// The most that a read gives.
const MOST: usize = 64 * 1024;

/// What the callable reads and writes, until it returns.
#[pyclass(frozen, module = "procwright._core")]
pub(crate) struct StageStreams {
    ends: Mutex<Option<(StageInput, StageOutput)>>,
    /// True once a write has found that nobody reads any more.
    has_no_reader: AtomicBool,
    /// True once a read or write has found that all are stopped.
    is_cut: AtomicBool,
}

#[pymethods]
impl StageStreams {
    /// Up to so many bytes, none at the end. The interpreter lock is free meanwhile.
    fn read<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let (mut input, _) = self.ends(py)?;
        let read = py.detach(move || {
            let mut data = vec![0; size.min(MOST)];
            let n = input.read(&mut data)?;
            data.truncate(n);
            Ok(data)
        });
        let data = read.map_err(|error| self.failed(py, &error))?;
        Ok(PyBytes::new(py, &data))
    }

    /// Writes all of it. The interpreter lock is free meanwhile.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let (_, mut output) = self.ends(py)?;
        let data = data.as_bytes();
        let written = py.detach(move || output.write_all(data));
        written.map_err(|error| self.failed(py, &error))
    }
}

impl StageStreams {
    fn ends(&self, py: Python<'_>) -> PyResult<(StageInput, StageOutput)> {
        // Nobody has the lock for longer than a copy takes, and waits for the interpreter with it.
        let ends = py.detach(|| self.ends.lock().clone());
        ends.ok_or_else(|| {
            PyValueError::new_err("this stream is of a function of a pipeline that has returned")
        })
    }

    fn failed(&self, py: Python<'_>, error: &io::Error) -> PyErr {
        if error.kind() == io::ErrorKind::BrokenPipe {
            self.has_no_reader.store(true, Ordering::Relaxed);
        }
        let errno = error.raw_os_error().unwrap_or(0);
        if errno == Errno::CANCELED.raw_os_error() {
            self.is_cut.store(true, Ordering::Relaxed);
        }
        match strerror(py, errno, error) {
            Ok(text) => system(error, text),
            Err(error) => error,
        }
    }

    /// The error of the callable for the core, which tells that of a stream from others: nobody
    /// has to be told of an `OSError` that comes of the end of the pipeline.
    fn error_of(&self, py: Python<'_>, error: PyErr) -> BoxError {
        let errno = match error.is_instance_of::<PyOSError>(py) {
            true => error.value(py).getattr("errno"),
            false => return Raised::boxed(error),
        };
        let errno = errno.and_then(|errno| errno.extract::<i32>());
        let is = |number: Errno| {
            errno
                .as_ref()
                .is_ok_and(|errno| *errno == number.raw_os_error())
        };
        if is(Errno::PIPE) && self.has_no_reader.load(Ordering::Relaxed) {
            io::Error::from(Errno::PIPE).into()
        } else if is(Errno::CANCELED) && self.is_cut.load(Ordering::Relaxed) {
            io::Error::from(Errno::CANCELED).into()
        } else {
            Raised::boxed(error)
        }
    }
}

/// The callable as the core calls it, with its [`StageStreams`].
pub(crate) fn stage_function(
    callable: Attached<Py<PyAny>>,
) -> impl FnOnce(&mut StageInput, &mut StageOutput) -> Result<(), BoxError> + Send + 'static {
    move |input, output| {
        let ends = (input.clone(), output.clone());
        let called = attach(|py| {
            let streams = StageStreams {
                ends: Mutex::new(Some(ends)),
                has_no_reader: AtomicBool::new(false),
                is_cut: AtomicBool::new(false),
            };
            let streams = Bound::new(py, streams).map_err(Raised::boxed)?;
            let args = PyTuple::new(py, [&streams]).map_err(Raised::boxed)?;
            let returned = call(callable.bind(py), &args);
            let streams = streams.get();
            // Whoever has kept a stream keeps no end of a pipe.
            let ends = py.detach(|| streams.ends.lock().take());
            drop(ends);
            returned
                .map(drop)
                .map_err(|error| streams.error_of(py, error))
        });
        // What the next program has got is a part.
        called.unwrap_or_else(|| Err("the interpreter is gone".into()))
    }
}
