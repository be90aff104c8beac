//! Sets of things to wait for. Every wait has one of its own.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};
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
use crate::process::Handle;
use crate::queue::{LentReceiver, Receiver};
use crate::signals::{Bell, Signals};
use crate::stream::Watcher;
use crate::values::{Cancel, choice, seconds};

/// Things to wait for until one deadline, which starts when this is made.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct WaitSet {
    deadline: Deadline,
    /// None once closed. Never waited for: who finds it taken is in a signal
    /// handler of the very wait, or on another thread, and either would deadlock.
    members: Mutex<Option<Members>>,
}

struct Members {
    set: procwright::WaitSet<Item>,
    /// What signals ring on the main thread.
    bell: Option<Arc<Bell>>,
}

struct Item {
    /// What the caller calls it.
    place: usize,
    what: What,
}

enum What {
    Process(Process),
    Cancel(procwright::Cancel),
    Monitor(Arc<Monitor>),
    /// Nobody else has it while it is in the set, which asks it.
    Queue(LentReceiver),
    /// A duplicate: the caller may close theirs while we wait.
    Fd(OwnedFd),
}

impl Waitable for Item {
    fn awaits(&self) -> Awaits<'_> {
        match &self.what {
            What::Process(process) => process.awaits(),
            What::Cancel(cancel) => cancel.awaits(),
            What::Monitor(monitor) => monitor.awaits(),
            What::Queue(receiver) => receiver.awaits(),
            What::Fd(fd) => Awaits::readable(fd.as_fd()),
        }
    }

    fn has_come(&mut self) -> bool {
        match &mut self.what {
            // In this order: the first may hear what a close rings.
            What::Queue(receiver) => {
                receiver.has_come() || receiver.is_closed() || receiver.has_kept()
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
        let members = Members {
            set: procwright::WaitSet::new().map_err(refused)?,
            bell: None,
        };
        Ok(WaitSet {
            deadline: timeout.starting(Instant::now()),
            members: Mutex::new(Some(members)),
        })
    }

    /// Puts in a process, a `Cancel`, a `LivenessMonitor`, a queue's `Receiver` or the number of a
    /// descriptor, to be known by its `place`. False for what need not be waited for: a
    /// receiver that is closed.
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
        let (what, shown) = if let Ok(handle) = item.cast::<Handle>() {
            let process = handle.get().0.clone();
            let shown = format!("process {}", process.id());
            (What::Process(process), shown)
        } else if let Ok(cancel) = item.cast::<Cancel>() {
            (What::Cancel(cancel.get().handle()), "a Cancel".into())
        } else if let Ok(monitor) = item.cast::<LivenessMonitor>() {
            let monitor = Arc::clone(&monitor.get().0);
            (What::Monitor(monitor), "a LivenessMonitor".into())
        } else if let Ok(receiver) = item.cast::<Receiver>() {
            let Some(receiver) = receiver.get().to_wait_for(py)? else {
                return Ok(false);
            };
            (What::Queue(receiver), "a queue's Receiver".into())
        } else {
            let number: RawFd = item.extract()?;
            let fd = duplicate_fd(number);
            let fd =
                fd.map_err(|error| unwatchable(py, &error, &format!("descriptor {number}")))?;
            (What::Fd(fd), format!("descriptor {number}"))
        };
        let mut guard = self.members()?;
        let members = guard.as_mut().ok_or_else(closed)?;
        let added = members.set.add(Item { place, what }, event);
        added.map_err(|error| unwatchable(py, &error, &shown))?;
        Ok(true)
    }

    /// Waits until as many have ended as wanted (0: any, -1: all, or so many) or
    /// until the deadline, and puts their places into `done`, in the order in which
    /// they ended. They are out of the set. Whether there were any. On the main
    /// thread signal handlers run meanwhile; if one raises, that is the error.
    ///
    /// Into a list of the caller's, and not as the result: of a result nothing is
    /// left when a handler raises before the caller has stored it. Ctrl-C ends
    /// children and wait at the same moment.
    fn wait(&self, py: Python<'_>, want: i64, done: &Bound<'_, PyList>) -> PyResult<bool> {
        let mut guard = self.members()?;
        let members = guard.as_mut().ok_or_else(closed)?;
        let now = Instant::now();
        let (ended, _) = members.take(want, Deadline::at(now)).map_err(refused)?;
        let mut count = put(&ended, done)?;
        if members.satisfied(want, count) || self.deadline.reached(Instant::now()) {
            return Ok(count > 0);
        }
        let mut signals = members.lend(py)?;
        let outcome = loop {
            let left = left(want, count);
            let waited = py.detach(|| members.take(left, self.deadline));
            match waited {
                Ok((more, outcome)) => {
                    match put(&more, done) {
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
            if let Some(signals) = &mut signals
                && let Err(error) = signals.run_handlers()
            {
                break Err(error);
            }
            if members.satisfied(want, count) {
                break Ok(());
            }
        };
        if let Some(signals) = signals {
            signals.restore(py);
        }
        outcome.map(|()| count > 0)
    }

    /// As `wait`, of those that have ended by now.
    fn look(&self, want: i64, done: &Bound<'_, PyList>) -> PyResult<bool> {
        let mut guard = self.members()?;
        let members = guard.as_mut().ok_or_else(closed)?;
        let now = Deadline::at(Instant::now());
        let (ended, _) = members.take(want, now).map_err(refused)?;
        Ok(put(&ended, done)? > 0)
    }

    /// The seconds that are left, none for no limit.
    fn remaining(&self) -> Option<f64> {
        let left = self.deadline.remaining(Instant::now());
        left.map(|left| left.as_secs_f64())
    }

    /// A descriptor that is readable when somebody has ended whom `look` has not
    /// seen yet.
    fn fileno(&self) -> PyResult<RawFd> {
        let guard = self.members()?;
        let members = guard.as_ref().ok_or_else(closed)?;
        Ok(members.set.as_fd().as_raw_fd())
    }

    /// Lets go of everything at once.
    fn close(&self) -> PyResult<()> {
        self.members()?.take();
        Ok(())
    }
}

impl WaitSet {
    fn members(&self) -> PyResult<MutexGuard<'_, Option<Members>>> {
        match self.members.try_lock() {
            Ok(guard) => Ok(guard),
            Err(_) => Err(PyRuntimeError::new_err(
                "somebody waits for this already, here or on another thread",
            )),
        }
    }
}

impl Members {
    /// Those that have ended, and why the wait is over.
    fn take(&mut self, want: i64, deadline: Deadline) -> io::Result<(Vec<Item>, Outcome)> {
        let want = match want {
            0 => Want::Any,
            want => usize::try_from(want).map_or(Want::All, Want::First),
        };
        let waited = self.set.wait_until(want, deadline)?;
        for (_, item) in &waited.ended {
            if let What::Monitor(monitor) = &item.what {
                // Its descriptor may tell of an end before its word does.
                monitor.confirm();
            }
        }
        // To be dropped with the interpreter lock held, says a receiver's place.
        let ended = waited.ended.into_iter().map(|(_, item)| item);
        Ok((ended.collect(), waited.outcome))
    }

    fn satisfied(&self, want: i64, ended: usize) -> bool {
        let enough = usize::try_from(want.max(1)).unwrap_or(usize::MAX);
        self.set.is_empty() || (want >= 0 && ended >= enough)
    }

    /// On the main thread, lets signals end the sleep.
    fn lend(&mut self, py: Python<'_>) -> PyResult<Option<Signals>> {
        if self.bell.is_none() {
            let bell = Bell::new().map_err(refused)?;
            self.set.cancel_on(Arc::clone(&bell)).map_err(refused)?;
            self.bell = Some(bell);
        }
        match &self.bell {
            Some(bell) => Signals::lend(py, bell),
            None => Ok(None),
        }
    }
}

/// Waits for one thing: whether it has ended, false once the deadline has come.
/// Signal handlers run meanwhile; if one raises, that is the error. None on another
/// thread than the main one, where no handlers run: there nothing is waited for.
pub(crate) fn sleep(
    py: Python<'_>,
    item: impl Waitable + Send,
    deadline: Deadline,
    refused: impl Fn(&io::Error) -> PyErr,
) -> PyResult<Option<bool>> {
    if !Watcher::is_possible() {
        return Ok(None);
    }
    let slept = Bell::with_kept(|bell| -> PyResult<Option<bool>> {
        let Some(mut signals) = Signals::lend(py, bell)? else {
            return Ok(None);
        };
        let wait = |signals: &mut Signals| -> PyResult<bool> {
            let mut set = procwright::WaitSet::new().map_err(|error| refused(&error))?;
            let added = set.add(item, Event::Exited);
            added.map_err(|error| refused(&error))?;
            let lent = set.cancel_on(Arc::clone(bell));
            lent.map_err(|error| refused(&error))?;
            loop {
                let waited = py.detach(|| set.wait_until(Want::Any, deadline));
                let waited = waited.map_err(|error| refused(&error))?;
                if waited.outcome != Outcome::Cancelled {
                    return Ok(!waited.ended.is_empty());
                }
                signals.run_handlers()?;
            }
        };
        let waited = wait(&mut signals);
        signals.restore(py);
        waited.map(Some)
    });
    let slept = slept.map_err(|error| refused(&error))??;
    if slept.is_none() {
        Watcher::is_not();
        Bell::keep_none();
    }
    Ok(slept)
}

/// Puts `ended` into `done`, and says how many these were.
fn put(ended: &[Item], done: &Bound<'_, PyList>) -> PyResult<usize> {
    for item in ended {
        done.append(item.place)?;
    }
    Ok(ended.len())
}

/// What is still wanted when some have ended.
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
        // What epoll says of a file on a disk.
        Some(Errno::PERM) => "cannot be waited for",
        Some(Errno::BADF) => "is not open",
        _ => return system(error, format!("cannot wait for {shown}: {error}")),
    };
    let hint = "pass a process, or a pipe, socket or other thing that becomes readable; \
                a file on a disk always is";
    invalid(py, &Invalid::new(shown, problem, hint))
}

/// Waits a moment, 10 ms for all together, until the processes that have ended
/// and whose status only their reaping will tell are reaped.
#[pyfunction]
pub(crate) fn linger(py: Python<'_>, ended: Vec<Bound<'_, Handle>>) {
    let ended: Vec<Process> = ended.iter().map(|handle| handle.get().0.clone()).collect();
    py.detach(|| Process::linger(&ended));
}

/// By what this process has waited so far.
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
