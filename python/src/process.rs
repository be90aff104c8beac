//! Any process; `procwright/_process.py` wraps it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::UNIX_EPOCH;

use procwright::process::{Id, ProcessError, Signal};
use procwright::{Holder, Process};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::arguments::descriptor;
use crate::errors::{self, duplicate, invalid};
use crate::report::status;
use crate::signals::while_stopping;
use crate::values::{SignalArg, Stop};

/// Pid, name and state of a process that could not be ended.
pub(crate) type RawSurvivor = (Option<i32>, String, char);

/// One process, whichever has its number later.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct ProcessHandle(pub(crate) Process);

#[pymethods]
impl ProcessHandle {
    /// The process with this number.
    #[staticmethod]
    fn of_pid(py: Python<'_>, pid: i32) -> PyResult<ProcessHandle> {
        or_raise(py, py.detach(|| Process::open(pid))).map(ProcessHandle)
    }

    /// The process with this number and inode, as text.
    #[staticmethod]
    fn of_id(py: Python<'_>, id: &str) -> PyResult<ProcessHandle> {
        let id: Id = id.parse().map_err(|error| invalid(py, &error))?;
        or_raise(py, py.detach(|| Process::open_id(id))).map(ProcessHandle)
    }

    /// The process with this number and start, and inode if that is known.
    #[staticmethod]
    fn of_identity(
        py: Python<'_>,
        pid: i32,
        start: u64,
        inode: Option<u64>,
    ) -> PyResult<ProcessHandle> {
        let holder = Holder::noted(pid, String::new(), Some((start, inode)));
        or_raise(py, py.detach(|| holder.process())).map(ProcessHandle)
    }

    /// The process of a pidfd, which stays the caller's.
    #[staticmethod]
    fn of_pidfd(py: Python<'_>, fd: &Bound<'_, PyAny>) -> PyResult<ProcessHandle> {
        let fd = descriptor("fd", fd)?;
        let fd = duplicate(py, fd, &format!("pidfd {fd}"))?;
        or_raise(py, Process::from_pidfd(fd)).map(ProcessHandle)
    }

    #[getter]
    fn pid(&self) -> i32 {
        self.0.pid()
    }

    #[getter]
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// The parts of a `Status`, none while it is alive.
    fn exit<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.0.exit().map(|exit| status(py, exit)).transpose()
    }

    fn signal(&self, py: Python<'_>, signal: SignalArg) -> PyResult<()> {
        let signal = signal.signal().map_err(|error| invalid(py, &error))?;
        or_raise(py, self.0.signal(signal))
    }

    fn terminate(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, self.0.signal(Signal::TERM))
    }

    fn kill(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, self.0.signal(Signal::KILL))
    }

    /// Pid, name and state of each process that could not be ended. On the main
    /// thread signal handlers run meanwhile; if one raises, that ends the grace, and
    /// is the error.
    fn stop(&self, py: Python<'_>, stop: &Bound<'_, Stop>) -> PyResult<Vec<RawSurvivor>> {
        let stop = stop.get().stop();
        let stopped = while_stopping(py, |signals| match signals {
            Some((wakeup, pipe)) => {
                let ready = || wakeup.run_handlers();
                self.0.stop_watching(stop, pipe.as_fd(), ready)
            }
            None => self.0.stop(stop).map(|survivors| (survivors, Ok(()))),
        })?;
        let (stopped, raised) = or_raise(py, stopped)?;
        raised?;
        Ok(survivors(stopped))
    }

    fn name(&self, py: Python<'_>) -> PyResult<String> {
        or_raise(py, self.0.name())
    }

    fn exe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let exe = or_raise(py, self.0.exe())?;
        Ok(PyBytes::new(py, exe.as_os_str().as_bytes()))
    }

    fn start_time(&self, py: Python<'_>) -> PyResult<f64> {
        let start = or_raise(py, self.0.start_time())?;
        // Nothing of this boot was started before 1970, unless the clock says so.
        Ok(start.duration_since(UNIX_EPOCH).map_or_else(
            |before| -before.duration().as_secs_f64(),
            |since| since.as_secs_f64(),
        ))
    }

    /// Readable once it has ended; none where no pidfd can be had.
    fn readiness_fd(&self) -> PyResult<Option<RawFd>> {
        match self.0.readiness() {
            Ok(fd) => Ok(Some(fd.as_raw_fd())),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn same(&self, other: &Bound<'_, ProcessHandle>) -> bool {
        self.0 == other.get().0
    }
}

/// The value, or the exception for the error.
fn or_raise<T>(py: Python<'_>, result: Result<T, ProcessError>) -> PyResult<T> {
    result.map_err(|error| errors::process(py, &error))
}

/// The parts of each `Survivor`.
pub(crate) fn survivors(survivors: Vec<procwright::process::Survivor>) -> Vec<RawSurvivor> {
    let survivors = survivors.into_iter();
    survivors
        .map(|one| (one.pid, one.name, one.state))
        .collect()
}
