//! The watching side.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use procwright::liveness::{Monitor, Names, Withdrawal};
use procwright::time::{Deadline, Timeout};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::words::{call_python, guarantee, state_name};
use super::{LivenessClaim, LivenessInvitation};
use crate::arguments::timeout_seconds;
use crate::errors::{self, invalid, system};
use crate::patient::sleep;
use crate::process::ProcessHandle;
use crate::values::seconds;

/// Knows whether a peer lives.
///
/// `peer` is a `LivenessInvitation`, to watch the token that it is of; or a `Process` or
/// what can be made one (a `Child`, a number, "PID:INODE", a `Popen`, see there), which
/// need not know of it. Any thread may use it. A fork may as well.
///
/// A monitor of a process is picklable; instead of one of a token, pass the invitation.
///
/// Raises `InvalidValue` for what cannot be one, `LivenessError` for an invitation from
/// before the machine was started, `NoSuchProcess` if the process is gone.
///
/// >>> import procwright, subprocess
/// >>> child = subprocess.Popen(["sleep", "60"])
/// >>> monitor = procwright.LivenessMonitor(child)
/// >>> monitor.alive()
/// True
/// >>> child.kill()
/// >>> monitor.wait(timeout=60)
/// 'died'
/// >>> child.wait()
/// -9
#[pyclass(module = "procwright", frozen, weakref)]
pub(crate) struct LivenessMonitor(pub(crate) Arc<Monitor>);

#[pymethods]
impl LivenessMonitor {
    #[new]
    fn new(py: Python<'_>, peer: &Bound<'_, PyAny>) -> PyResult<LivenessMonitor> {
        let made = if let Ok(invitation) = peer.cast::<LivenessInvitation>() {
            let invitation = invitation.get().duplicated()?;
            py.detach(|| Monitor::accept(invitation))
        } else {
            let handle = call_python(py, "_peer", (peer,))?;
            let process = handle.cast::<ProcessHandle>()?.get().0.clone();
            py.detach(|| Monitor::of_process(&process))
        };
        LivenessMonitor::made(py, made)
    }

    /// The parent's, in a program that it has spawned with `liveness=True`.
    ///
    /// May be called again. Raises `LivenessError` in all other programs.
    #[staticmethod]
    fn of_parent(py: Python<'_>) -> PyResult<LivenessMonitor> {
        let made = py.detach(Monitor::of_parent);
        LivenessMonitor::made(py, made)
    }

    /// True if the peer lives: one load from memory while it does, no system call.
    ///
    /// The answer is that of a moment ago. A peer that is stopped or hangs is alive.
    fn alive(&self) -> bool {
        self.0.alive()
    }

    /// "alive", "released" (it has given its token back, and may live on) or "died" (the
    /// process has ended, or runs another program than the one that held the token).
    fn state(&self) -> &'static str {
        state_name(self.0.state())
    }

    /// The `state`, for which the kernel is asked as well where the word says "alive".
    fn confirm(&self, py: Python<'_>) -> &'static str {
        state_name(py.detach(|| self.0.confirm()))
    }

    /// Waits until the peer does not live any more: "released" or "died".
    ///
    /// Sleeps all the while. Raises `WaitTimeout`, which is a `subprocess.TimeoutExpired`
    /// and a `TimeoutError`, if the time comes first. Signal handlers run as usual.
    #[pyo3(signature = (timeout=None))]
    fn wait(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        #[pyo3(from_py_with = timeout_seconds)] timeout: Option<f64>,
    ) -> PyResult<&'static str> {
        let limit = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let monitor = &slf.get().0;
        if monitor.alive() && !wait_until(slf, limit.starting(Instant::now()))? {
            return Err(call_python(py, "_timeout_error", (slf, timeout))
                .map_or_else(|error| error, PyErr::from_value));
        }
        Ok(state_name(monitor.confirm()))
    }

    /// A sleep on a word that another thread can end.
    fn _sleep(&self) -> LivenessSleep {
        LivenessSleep {
            monitor: Arc::clone(&self.0),
            withdrawal: Withdrawal::new(),
        }
    }

    /// Waits as `wait` does, for asyncio and trio.
    #[pyo3(signature = (timeout=None))]
    fn wait_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = timeout_seconds)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_python(slf.py(), "_wait_async", (slf, timeout))
    }

    /// Waits until the process of the peer is gone with all its threads.
    ///
    /// A thread of it may write until then to what was shared with it. Raises as `wait`, and
    /// `LivenessError` if the process cannot be seen from here. The process goes on after its
    /// token was released, and after an exec: give a timeout where peers do that.
    #[pyo3(signature = (timeout=None))]
    fn wait_gone(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = timeout_seconds)] timeout: Option<f64>,
    ) -> PyResult<()> {
        call_python(slf.py(), "_wait_gone", (slf, timeout)).map(drop)
    }

    /// Asks for the right to clean up after the peer, when it has died: a `LivenessClaim`.
    ///
    /// One of all that were invited to watch the peer, in whatever processes, has it at a time.
    /// If another has it, waits so many seconds until that is done, gives it back or dies; None
    /// for ever. Signal handlers run as usual. The claim settles which process cleans up, not when:
    /// see `wait_gone`.
    ///
    /// Raises `LivenessError` for a monitor of a process.
    #[pyo3(signature = (timeout=Some(0.0)), text_signature = "($self, timeout=0.0)")]
    fn claim<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = timeout_seconds)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_python(slf.py(), "_claim", (slf, timeout))
    }

    /// A descriptor that is readable once the peer does not live any more. It stays this
    /// object's.
    fn readiness_fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        let fd = py.detach(|| self.0.readiness_fd().map(|fd| fd.as_raw_fd()));
        fd.map_err(|error| unwatchable(&error))
    }

    /// The `Process` of the peer, None where it cannot be seen from here.
    #[getter]
    fn process<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let process = self.0.process();
        process
            .map(|process| call_python(py, "_process", (ProcessHandle(process.clone()),)))
            .transpose()
    }

    /// The promise of this monitor: a `LivenessGuarantee`.
    fn guarantee<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarantee(py, self.0.guarantee())
    }

    fn __repr__(&self) -> String {
        let whose = match self.0.process() {
            Some(process) => format!("process {}", process.id()),
            None => "a process out of sight".into(),
        };
        format!("<procwright.LivenessMonitor of {whose}, {}>", self.state())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let monitor = &slf.get().0;
        let id = match (monitor.guarantee().names, monitor.process()) {
            (Names::Process, Some(process)) => process.id(),
            _ => {
                return Err(PyTypeError::new_err(
                    "a LivenessMonitor of a token cannot be pickled: pass the invitation that \
                     it was made of, or token.invite()",
                ));
            }
        };
        let id = id.to_string();
        if !id.contains(':') {
            return Err(PyTypeError::new_err(
                "this LivenessMonitor cannot be pickled: on this system nothing but its number \
                 names a process, and that may be another's by then",
            ));
        }
        Ok((slf.get_type(), (id,)).into_pyobject(slf.py())?.into_any())
    }
}

/// A call that sleeps on a word of a monitor, on a thread of its own.
#[pyclass(module = "procwright", frozen)]
pub(crate) struct LivenessSleep {
    monitor: Arc<Monitor>,
    withdrawal: Withdrawal,
}

#[pymethods]
impl LivenessSleep {
    #[pyo3(signature = (timeout))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let waited = py.detach(|| self.monitor.wait_unless(&self.withdrawal, timeout));
        Ok(waited.is_some())
    }

    #[pyo3(signature = (timeout))]
    fn claim(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<LivenessClaim> {
        let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let claim = py.detach(|| self.monitor.claim_unless(&self.withdrawal, timeout));
        claim
            .map(LivenessClaim::new)
            .map_err(|error| errors::liveness(py, &error))
    }

    /// Ends the call, which another thread is in or is about to make.
    fn leave(&self, py: Python<'_>) {
        py.detach(|| self.monitor.withdraw(&self.withdrawal));
    }
}

impl LivenessMonitor {
    fn made(
        py: Python<'_>,
        made: Result<Monitor, procwright::liveness::Error>,
    ) -> PyResult<LivenessMonitor> {
        match made {
            Ok(monitor) => Ok(LivenessMonitor(Arc::new(monitor))),
            Err(error) => Err(errors::liveness(py, &error)),
        }
    }
}

/// Waits until the peer does not live any more; false once the deadline has come. On the
/// main thread signal handlers run meanwhile; if one raises, that is the error.
fn wait_until(slf: &Bound<'_, LivenessMonitor>, deadline: Deadline) -> PyResult<bool> {
    let (py, monitor) = (slf.py(), &slf.get().0);
    let is_inherited = Cell::new(false);
    let waited = sleep(py, Arc::clone(monitor), deadline, |error| {
        is_inherited.set(error.kind() == io::ErrorKind::Unsupported);
        unwatchable(error)
    });
    if is_inherited.get() {
        // The descriptor for a token is that of the process that was forked. A fork can
        // still sleep on the word, but no signal ends that sleep.
        let left = deadline.remaining(Instant::now());
        let left = left.map(|left| left.as_secs_f64());
        return call_python(py, "_wait_elsewhere", (slf, left))?.extract();
    }
    match waited? {
        Some(over) => Ok(over),
        // Handlers do not run on this thread.
        None => Ok(sleep_on_word(py, monitor, deadline)),
    }
}

/// Sleeps on the word of the peer, without a descriptor and without another thread. No
/// signal ends that.
fn sleep_on_word(py: Python<'_>, monitor: &Monitor, deadline: Deadline) -> bool {
    let left = deadline.remaining(Instant::now());
    let timeout = left.map_or(Timeout::NEVER, Timeout::from);
    py.detach(|| monitor.wait(timeout)).is_some()
}

fn unwatchable(error: &io::Error) -> PyErr {
    system(error, format!("cannot wait for the peer: {error}"))
}
