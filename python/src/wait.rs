//! Sets of things to wait for. Every wait has one of its own.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use procwright::error::Invalid;
use procwright::liveness::Monitor;
use procwright::time::Deadline;
use procwright::wait::{self, Awaits, Event, Outcome, Waitable, Want};
use procwright::{Process, duplicate_fd};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustix::io::Errno;

use crate::errors::{invalid, system};
use crate::liveness::LivenessMonitor;
use crate::process::ProcessHandle;
use crate::queue::{OwnedReceiver, Receiver};
use crate::signals::{WakePipe, WakeupFd};
use crate::values::{Cancel, choice, seconds};
use procwright_os::sync::Mutex;

/// Things to wait for until one deadline, which starts when this is made.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct WaitSet {
    deadline: Deadline,
    /// The set, None once closed. No call waits for this lock: one that finds it taken is in a
    /// signal handler of the very wait, or on another thread, and either would deadlock.
    open: Mutex<Option<OpenSet>>,
}

struct OpenSet {
    set: procwright::WaitSet<WaitItem>,
    /// The pipe that signals write to, if this waits on the main thread.
    pipe: Option<Arc<WakePipe>>,
}

struct WaitItem {
    /// The number that the caller has given it.
    place: usize,
    watched: WaitTarget,
}

enum WaitTarget {
    Process(Process),
    Cancel(procwright::Cancel),
    Monitor(Arc<Monitor>),
    /// Taken out of its place while it is in the set, which asks it.
    Queue(OwnedReceiver),
    /// A duplicate: the caller may close its own meanwhile.
    Fd(OwnedFd),
}

impl Waitable for WaitItem {
    fn awaits(&self) -> Awaits<'_> {
        match &self.watched {
            WaitTarget::Process(process) => process.awaits(),
            WaitTarget::Cancel(cancel) => cancel.awaits(),
            WaitTarget::Monitor(monitor) => monitor.awaits(),
            WaitTarget::Queue(receiver) => receiver.awaits(),
            WaitTarget::Fd(fd) => Awaits::readable(fd.as_fd()),
        }
    }

    fn has_come(&mut self) -> bool {
        match &mut self.watched {
            // `has_come` goes first: it may take in the wake-up of a close.
            WaitTarget::Queue(receiver) => {
                receiver.has_come() || receiver.is_closed() || receiver.has_deferred()
            }
            _ => true,
        }
    }
}

#[pymethods]
impl WaitSet {
    #[new]
    fn new(py: Python<'_>, timeout: Option<f64>) -> PyResult<WaitSet> {
        let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let open = OpenSet {
            set: procwright::WaitSet::new().map_err(refused)?,
            pipe: None,
        };
        Ok(WaitSet {
            deadline: timeout.starting(Instant::now()),
            open: Mutex::new(Some(open)),
        })
    }

    /// Adds a process, a `Cancel`, a `LivenessMonitor`, a queue's `Receiver` or the number of a
    /// descriptor, to be known by its `place`. False for a receiver that is closed: there is
    /// nothing to wait for.
    fn add(
        &self,
        py: Python<'_>,
        place: usize,
        item: &Bound<'_, PyAny>,
        event: &str,
    ) -> PyResult<bool> {
        let events = [Event::Exited, Event::Reaped];
        let Some(event) = events.into_iter().find(|known| known.name() == event) else {
            return Err(choice(py, "event", event, "\"exited\" or \"reaped\""));
        };
        let (watched, shown) = if let Ok(handle) = item.cast::<ProcessHandle>() {
            let process = handle.get().0.clone();
            let shown = format!("process {}", process.id());
            (WaitTarget::Process(process), shown)
        } else if let Ok(cancel) = item.cast::<Cancel>() {
            (WaitTarget::Cancel(cancel.get().handle()), "a Cancel".into())
        } else if let Ok(monitor) = item.cast::<LivenessMonitor>() {
            let monitor = Arc::clone(&monitor.get().0);
            (WaitTarget::Monitor(monitor), "a LivenessMonitor".into())
        } else if let Ok(receiver) = item.cast::<Receiver>() {
            let Some(receiver) = receiver.get().take_to_wait(py)? else {
                return Ok(false);
            };
            (WaitTarget::Queue(receiver), "a queue's Receiver".into())
        } else {
            let number: RawFd = item.extract()?;
            let fd = duplicate_fd(number);
            let fd =
                fd.map_err(|error| unwatchable(py, &error, &format!("descriptor {number}")))?;
            (WaitTarget::Fd(fd), format!("descriptor {number}"))
        };
        let mut guard = self.open()?;
        let open = guard.as_mut().ok_or_else(closed)?;
        let added = open.set.add(WaitItem { place, watched }, event);
        added.map_err(|error| unwatchable(py, &error, &shown))?;
        Ok(true)
    }

    /// Waits until as many have ended as wanted (0: any, -1: all, or so many) or
    /// until the deadline, and puts their places into `done`, in the order in which
    /// they ended. They are out of the set. Whether there were any. On the main
    /// thread signal handlers run meanwhile; if one raises, that is the error.
    ///
    /// The places go into a list of the caller's: a result would be lost when a handler raises
    /// before the caller has stored it, and Ctrl-C ends children and wait at the same moment.
    fn wait(&self, py: Python<'_>, want: i64, done: &Bound<'_, PyList>) -> PyResult<bool> {
        let mut guard = self.open()?;
        let open = guard.as_mut().ok_or_else(closed)?;
        let now = Instant::now();
        let (ended, _) = open.take(want, Deadline::at(now)).map_err(refused)?;
        let mut count = append_places(&ended, done)?;
        if open.satisfied(want, count) || self.deadline.reached(Instant::now()) {
            return Ok(count > 0);
        }
        let mut wakeup = open.lend(py)?;
        let outcome = loop {
            let left = left(want, count);
            let waited = py.detach(|| open.take(left, self.deadline));
            match waited {
                Ok((more, outcome)) => {
                    match append_places(&more, done) {
                        Ok(more) => count += more,
                        Err(error) => break Err(error),
                    }
                    if outcome != Outcome::Cancelled {
                        break Ok(());
                    }
                }
                Err(error) => break Err(refused(error)),
            }
            // A signal. The wait goes on until the same deadline, unless its
            // handler raises.
            if let Some(wakeup) = &mut wakeup
                && let Err(error) = wakeup.run_handlers()
            {
                break Err(error);
            }
            if open.satisfied(want, count) {
                break Ok(());
            }
        };
        if let Some(wakeup) = wakeup {
            wakeup.restore(py);
        }
        outcome.map(|()| count > 0)
    }

    /// Takes those that have ended by now, as `wait` does.
    fn poll(&self, want: i64, done: &Bound<'_, PyList>) -> PyResult<bool> {
        let mut guard = self.open()?;
        let open = guard.as_mut().ok_or_else(closed)?;
        let now = Deadline::at(Instant::now());
        let (ended, _) = open.take(want, now).map_err(refused)?;
        Ok(append_places(&ended, done)? > 0)
    }

    /// The seconds that are left, none for no limit.
    fn remaining(&self) -> Option<f64> {
        let left = self.deadline.remaining(Instant::now());
        left.map(|left| left.as_secs_f64())
    }

    /// A descriptor that is readable when something has ended that `poll` has not told.
    fn fileno(&self) -> PyResult<RawFd> {
        let guard = self.open()?;
        let open = guard.as_ref().ok_or_else(closed)?;
        Ok(open.set.as_fd().as_raw_fd())
    }

    /// Lets go of everything at once.
    fn close(&self) -> PyResult<()> {
        self.open()?.take();
        Ok(())
    }
}

impl WaitSet {
    fn open(&self) -> PyResult<MutexGuard<'_, Option<OpenSet>>> {
        self.open.try_lock().ok_or_else(|| {
            PyRuntimeError::new_err("somebody waits for this already, here or on another thread")
        })
    }
}

impl OpenSet {
    /// Waits, and removes those that have ended.
    fn take(&mut self, want: i64, deadline: Deadline) -> io::Result<(Vec<WaitItem>, Outcome)> {
        let want = match want {
            0 => Want::Any,
            want => usize::try_from(want).map_or(Want::All, Want::First),
        };
        let waited = self.set.wait_until(want, deadline)?;
        for (_, item) in &waited.ended {
            if let WaitTarget::Monitor(monitor) = &item.watched {
                // The descriptor may tell of an end before the word does.
                monitor.confirm();
            }
        }
        // The caller drops them with the interpreter lock held, as a receiver's place demands.
        let ended = waited.ended.into_iter().map(|(_, item)| item);
        Ok((ended.collect(), waited.outcome))
    }

    fn satisfied(&self, want: i64, ended: usize) -> bool {
        let enough = usize::try_from(want.max(1)).unwrap_or(usize::MAX);
        self.set.is_empty() || (want >= 0 && ended >= enough)
    }

    /// Lets signals end the sleep, on the main thread.
    fn lend(&mut self, py: Python<'_>) -> PyResult<Option<WakeupFd>> {
        if self.pipe.is_none() {
            let pipe = WakePipe::new().map_err(refused)?;
            self.set.cancel_on(Arc::clone(&pipe)).map_err(refused)?;
            self.pipe = Some(pipe);
        }
        match &self.pipe {
            Some(pipe) => WakeupFd::lend(py, pipe),
            None => Ok(None),
        }
    }
}

/// Appends the places of `ended` to `done`; how many these were.
fn append_places(ended: &[WaitItem], done: &Bound<'_, PyList>) -> PyResult<usize> {
    for item in ended {
        done.append(item.place)?;
    }
    Ok(ended.len())
}

/// The number that is still wanted when some have ended.
fn left(want: i64, ended: usize) -> i64 {
    match want {
        1.. => (want - i64::try_from(ended).unwrap_or(0)).max(1),
        any_or_all => any_or_all,
    }
}

/// The exception when the system does not let us wait.
fn refused(error: io::Error) -> PyErr {
    system(&error, format!("cannot wait: {error}"))
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("this set was closed")
}

/// The exception for something that cannot be put in.
fn unwatchable(py: Python<'_>, error: &io::Error, shown: &str) -> PyErr {
    let problem = match error.raw_os_error().map(Errno::from_raw_os_error) {
        // epoll refuses a file on a disk so.
        Some(Errno::PERM) => "cannot be waited for",
        Some(Errno::BADF) => "is not open",
        _ => return system(error, format!("cannot wait for {shown}: {error}")),
    };
    let hint = "pass a process, or a pipe, socket or other thing that becomes readable; \
                a file on a disk always is";
    invalid(py, &Invalid::new(shown, problem, hint))
}

/// Waits, for 10 ms at most, until the processes that have ended
/// and whose status only their reaping will tell are reaped.
#[pyfunction]
pub(crate) fn linger(py: Python<'_>, ended: Vec<Bound<'_, ProcessHandle>>) {
    let ended: Vec<Process> = ended.iter().map(|handle| handle.get().0.clone()).collect();
    py.detach(|| Process::linger(&ended));
}

/// The mechanisms by which this process has waited so far.
///
/// `served` counts the waits that each mechanism has brought to an end, `looks`
/// how often a process had to be looked at because nothing tells of its end.
#[pyfunction]
pub(crate) fn wait_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = wait::stats();
    let served = PyDict::new(py);
    for (mechanism, times) in stats.served {
        served.set_item(mechanism.name(), times)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("served", served)?;
    dict.set_item("looks", stats.looks)?;
    Ok(dict)
}
