//! Any process, as `procwright/_process.py` wraps it.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::UNIX_EPOCH;

use procwright::Process;
use procwright::duplicate_fd;
use procwright::process::{Id, ProcessError, Signal};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::errors::{self, invalid, strerror, system};
use crate::report::status;
use crate::signals::{Bell, Signals};
use crate::values::{SignalArg, Stop};

/// One process, for good.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Handle(pub(crate) Process);

#[pymethods]
impl Handle {
    /// By its number.
    #[staticmethod]
    fn of_pid(py: Python<'_>, pid: i32) -> PyResult<Handle> {
        known(py, py.detach(|| Process::open(pid))).map(Handle)
    }

    /// By its number and inode, as text.
    #[staticmethod]
    fn of_id(py: Python<'_>, id: &str) -> PyResult<Handle> {
        let id: Id = id.parse().map_err(|error| invalid(py, &error))?;
        known(py, py.detach(|| Process::open_id(id))).map(Handle)
    }

    /// By a pidfd, which stays the caller's.
    #[staticmethod]
    fn of_pidfd(py: Python<'_>, fd: RawFd) -> PyResult<Handle> {
        let fd = duplicate_fd(fd).map_err(|error| {
            let reason = strerror(py, error.raw_os_error().unwrap_or(0), &error);
            reason.map_or_else(
                |error| error,
                |reason| system(&error, format!("pidfd {fd}: {reason}")),
            )
        })?;
        known(py, Process::from_pidfd(fd)).map(Handle)
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
        known(py, self.0.signal(signal))
    }

    fn terminate(&self, py: Python<'_>) -> PyResult<()> {
        known(py, self.0.signal(Signal::TERM))
    }

    fn kill(&self, py: Python<'_>) -> PyResult<()> {
        known(py, self.0.signal(Signal::KILL))
    }

    /// Pid, name and state of each process that could not be ended. On the main
    /// thread signal handlers run meanwhile; if one raises, that ends the grace, and
    /// is the error.
    fn stop(&self, py: Python<'_>, stop: &Bound<'_, Stop>) -> PyResult<Vec<(i32, String, char)>> {
        let stop = stop.get().stop();
        // Without a descriptor it is stopped all the same, and handlers run later.
        let bell = Bell::new().ok();
        let lent = bell.as_ref().map(|bell| Signals::lend(py, bell));
        let mut signals = lent.transpose()?.flatten();
        let stopped = py.detach(|| match (&mut signals, &bell) {
            (Some(signals), Some(bell)) => {
                let ready = || signals.run_handlers();
                self.0.stop_watching(stop, bell.as_fd(), ready)
            }
            _ => self.0.stop(stop).map(|survivors| (survivors, Ok(()))),
        });
        if let Some(signals) = signals {
            signals.restore(py);
        }
        let (survivors, raised) = known(py, stopped)?;
        raised?;
        let survivors = survivors.into_iter();
        Ok(survivors
            .map(|one| (one.pid, one.name, one.state))
            .collect())
    }

    fn name(&self, py: Python<'_>) -> PyResult<String> {
        known(py, self.0.name())
    }

    fn exe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let exe = known(py, self.0.exe())?;
        Ok(PyBytes::new(py, exe.as_os_str().as_bytes()))
    }

    fn start_time(&self, py: Python<'_>) -> PyResult<f64> {
        let start = known(py, self.0.start_time())?;
        // Nothing of this boot was started before 1970, unless the clock says so.
        Ok(start.duration_since(UNIX_EPOCH).map_or_else(
            |before| -before.duration().as_secs_f64(),
            |since| since.as_secs_f64(),
        ))
    }

    fn pidfd(&self) -> Option<RawFd> {
        self.0.pidfd().map(|fd| fd.as_raw_fd())
    }

    fn same(&self, other: &Bound<'_, Handle>) -> bool {
        self.0 == other.get().0
    }
}

fn known<T>(py: Python<'_>, result: Result<T, ProcessError>) -> PyResult<T> {
    result.map_err(|error| errors::process(py, &error))
}
