//! A child and its streams, as `procwright/_child.py` wraps it.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Instant;

use procwright::error::Invalid;
use procwright::queue::{self, Channel};
use procwright::stream::MergedReader;
use procwright::terminal::Size;
use procwright::{BoxError, Command, Event, Overflow, WaitError};
use pyo3::exceptions::{PyBrokenPipeError, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::errors::{self, invalid, not_started};
use crate::options::Setup;
use crate::process::Handle;
use crate::queue::{Receiver, Sender};
use crate::report::{self, status};
use crate::run::tell;
use crate::signals::{Bell, Signals};
use crate::stream::{Source, patiently, stalled};
use crate::taps::{Held, Pieces};
use crate::values::{Stop, choice, seconds};

/// A program that was started.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Child {
    child: procwright::Child,
    /// As errors call it.
    command: String,
    stdin: Mutex<Option<procwright::stream::Writer>>,
    outputs: [Mutex<Option<procwright::stream::Reader>>; 2],
    merged: Mutex<Option<MergedReader>>,
    /// What it sends to, until somebody takes that.
    receiver: Mutex<Option<queue::Receiver>>,
    hook: Hook,
}

/// What is for a child alone, from the dictionary that has its [`Setup`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    overflow: Option<(String, u64, Option<u64>)>,
    merged: bool,
    stall_after: Option<f64>,
    channel: Option<String>,
    on_event: Py<PyAny>,
}

/// Starts a program, and leaves it to the caller.
#[pyfunction]
#[pyo3(signature = (options, /))]
pub(crate) fn spawn(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Child> {
    let (mut spec, next) = options.extract::<Setup<'_>>()?.spec(py)?;
    let Options {
        overflow,
        merged,
        stall_after,
        channel,
        on_event,
    } = options.extract()?;
    spec.merged = merged;
    let channel = channel.map(|way| channel_of(py, &way)).transpose()?;
    let overflow = overflow.map(|parts| policy(py, parts)).transpose()?;
    let stall_after = seconds("stall_after", stall_after).map_err(|error| invalid(py, &error))?;
    let hook: Hook = Arc::new(Mutex::new(Some(on_event)));
    let listening = Arc::clone(&hook);
    let spawned = py.detach(|| {
        let mut command = Command::from_spec(spec)
            .stall_after(stall_after)
            .on_stream_event(listener(listening));
        if let Some(next) = next {
            command = command.stdin_iter(Pieces::new(next));
        }
        if let Some(channel) = channel {
            command = command.channel(channel);
        }
        command.spawn_with(overflow)
    });
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
        receiver: Mutex::new(child.receiver().ok()),
        child,
        command,
        hook,
    })
}

/// Whom events are told. None once the collector has found that he is garbage, in a
/// circle with the child.
type Hook = Arc<Mutex<Option<Py<PyAny>>>>;

/// Hands events to Python on a thread that starts with the first: the one that has
/// them empties the pipes of all children, and must not wait for an interpreter.
/// Nor when it drops the last reference, which it leaves to whoever comes with the
/// interpreter lock next: as PyO3 does without that, and as `Held` would not.
fn listener(hook: Hook) -> impl Fn(&Event) + Send + Sync + 'static {
    let (send, receive) = mpsc::channel::<Event>();
    let waiting = Mutex::new(Some((receive, hook)));
    move |event| {
        let first = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((receive, hook)) = first {
            let thread = std::thread::Builder::new().name("procwright-events".into());
            // Without a thread nobody is told; the figures have it all the same.
            let _ = thread.spawn(move || {
                while let Ok(event) = receive.recv() {
                    let held = Python::try_attach(|py| {
                        let hook = hook.lock().unwrap_or_else(PoisonError::into_inner);
                        Held::new(hook.as_ref()?.clone_ref(py)).into()
                    });
                    let told = held
                        .flatten()
                        .and_then(|held: Held| Some(tell(held.get()?, &event)));
                    if let Some(Err(error)) = told {
                        unraisable(error);
                    }
                }
            });
        }
        let _ = send.send(event.clone());
    }
}

/// As Python does with what a thread raises that nobody waits for.
fn unraisable(error: BoxError) {
    let _ = Python::try_attach(|py| match error.downcast::<PyErr>() {
        Ok(error) => error.write_unraisable(py, None),
        Err(error) => PyRuntimeError::new_err(error.to_string()).write_unraisable(py, None),
    });
}

fn channel_of(py: Python<'_>, way: &str) -> PyResult<Channel> {
    match way {
        "from_child" => Ok(Channel::FromChild),
        "to_child" => Ok(Channel::ToChild),
        other => {
            let ways = "\"from_child\" or \"to_child\"";
            Err(choice(py, "channel", other, ways))
        }
    }
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
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Held only for as long as it takes to make a reference. Without it nothing is
        // found to be garbage this time.
        match self.hook.try_lock() {
            Ok(hook) => visit.call(&*hook),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let hook = take(&self.hook);
        drop(hook);
    }

    /// What it sends to: to be taken once.
    fn receiver(&self, py: Python<'_>) -> PyResult<Receiver> {
        let receiver = take(&self.receiver);
        let none = || queue::Error::NoChannel("it was started without one from it".into());
        Receiver::made(py, receiver.ok_or_else(none))
    }

    /// To what it receives: waits until that is there. To be taken once.
    fn sender(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Sender> {
        let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let deadline = timeout.starting(Instant::now());
        let made = patiently(py, deadline, |patience| {
            match self.child.sender_with(patience) {
                Err(queue::Error::TimedOut) => Err(io::ErrorKind::TimedOut.into()),
                Err(queue::Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {
                    Err(error)
                }
                made => Ok(made),
            }
        })?;
        let made = made.unwrap_or(Err(queue::Error::TimedOut));
        Sender::made(py, made, queue::Overflow::Block, None)
    }

    /// Nobody will send to it any more, unless somebody has taken that.
    fn close_sender(&self) {
        self.child.close_sender();
    }

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

    /// Waits until it has ended; none if the timeout came first. On the main thread
    /// signal handlers run meanwhile, and what one raises is the error.
    fn wait<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let deadline = timeout.starting(Instant::now());
        let waited = patiently(py, deadline, |patience| {
            match self.child.wait_with(patience) {
                Ok(Some(exit)) => Ok(Ok(exit)),
                Ok(None) => Err(io::ErrorKind::TimedOut.into()),
                Err(WaitError::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
                Err(error) => Ok(Err(error)),
            }
        })?;
        match waited {
            Ok(Ok(exit)) => status(py, exit).map(Some),
            Ok(Err(WaitError::Stalled(error))) => Err(stalled(py, &error)),
            Ok(Err(WaitError::Process(error))) => Err(errors::process(py, &error)),
            Ok(Err(WaitError::Stdin(error))) => Err(match error.downcast::<PyErr>() {
                Ok(error) => *error,
                Err(error) => PyRuntimeError::new_err(error.to_string()),
            }),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            Ok(Err(error)) => Err(PyRuntimeError::new_err(error.to_string())),
            Err(error) => Err(errors::system(&error, error.to_string())),
        }
    }

    /// Pid, name and state of each process that could not be ended. On the main
    /// thread signal handlers run meanwhile; if one raises, that ends the grace, and
    /// is the error.
    fn stop(
        &self,
        py: Python<'_>,
        stop: Option<&Bound<'_, Stop>>,
    ) -> PyResult<Vec<(i32, String, char)>> {
        let stop = stop.map_or_else(|| self.child.stop_policy(), |stop| stop.get().stop());
        // Without a descriptor it is stopped all the same, and handlers run later.
        let bell = Bell::new().ok();
        let lent = bell.as_ref().map(|bell| Signals::lend(py, bell));
        let mut signals = lent.transpose()?.flatten();
        let (survivors, raised) = py.detach(|| match (&mut signals, &bell) {
            (Some(signals), Some(bell)) => {
                let ready = || signals.run_handlers();
                self.child.stop_watching(stop, bell.as_fd(), ready)
            }
            _ => (self.child.stop_with(stop), Ok(())),
        });
        if let Some(signals) = signals {
            signals.restore(py);
        }
        raised?;
        let survivors = survivors.into_iter();
        Ok(survivors
            .map(|one| (one.pid, one.name, one.state))
            .collect())
    }

    /// Says how large its terminal is.
    fn resize(&self, rows: u16, columns: u16) -> PyResult<()> {
        let resized = self.child.resize(Size { rows, columns });
        resized.map_err(|error| match error.kind() {
            // There is none, and there was none: neither is the system's to say.
            io::ErrorKind::Unsupported => PyRuntimeError::new_err(error.to_string()),
            io::ErrorKind::NotConnected => PyBrokenPipeError::new_err(error.to_string()),
            _ => errors::system(&error, error.to_string()),
        })
    }

    /// What a run reports, with what was read of both streams; none while it lives.
    fn report<'py>(
        &self,
        py: Python<'py>,
        stdout: Option<Bound<'py, PyBytes>>,
        stderr: Option<Bound<'py, PyBytes>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(report) = py.detach(|| self.child.report()) else {
            return Ok(None);
        };
        let dict = report::dict(py, &report)?;
        let last_words = match report.is_of_a_terminal() {
            true => &stdout,
            false => &stderr,
        };
        let shown = last_words.as_ref().map_or(&[][..], |data| data.as_bytes());
        dict.set_item("explanation", report.explain(shown))?;
        dict.set_item("summary", report.summary())?;
        dict.set_item("stdout", &stdout)?;
        dict.set_item("stderr", &stderr)?;
        for none in ["merged", "error", "io_error"] {
            dict.set_item(none, py.None())?;
        }
        Ok(Some(dict))
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
