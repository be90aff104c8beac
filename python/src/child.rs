//! A child; `procwright/_child.py` wraps it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use procwright::error::{SpawnError, Step};
use procwright::queue;
use procwright::terminal::Size;
use procwright::{BoxError, Command, Error, Process, Reason, StdStream, WaitError};
use pyo3::exceptions::{PyBrokenPipeError, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::attach::{attach, drop_deferred, expect_calls};
use crate::errors::{self, invalid, not_started, start_refused};
use crate::events::{EventHook, HookPlace, listener};
use crate::explained;
use crate::options::{CommonOptions, SpawnOptions};
use crate::patient::patiently;
use crate::process::{self, ProcessHandle};
use crate::queue::{Receiver, Sender};
use crate::raised::exception_of;
use crate::report::{self, UNTIL_EXIT, status};
use crate::signals::while_stopping;
use crate::stream::{UntakenStreams, stalled};
use crate::taps::{ChunkTap, StdinPieces};
use crate::tee::{self, Tee};
use crate::values::{Stop, seconds};
use procwright_os::fork::OnceBox;
use procwright_os::sync::Mutex;

/// A program that was started.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Child {
    pub(crate) child: procwright::Child,
    streams: Py<UntakenStreams>,
    /// The process, once somebody has asked for it.
    asked: OnceBox<Process>,
    /// The receiver of its channel, until that is taken.
    receiver: Mutex<Option<queue::Receiver>>,
    hook: EventHook,
    /// Its tee shows on our own stream what would be told of it.
    is_shown: bool,
}

/// Starts a program, and leaves it to the caller.
#[pyfunction]
#[pyo3(signature = (options, /))]
pub(crate) fn spawn(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Child> {
    let mut common: CommonOptions<'_> = options.extract()?;
    let (spec, next) = common.spec(py)?;
    let tees = common.tees(py)?;
    let shown: Vec<_> = tees.iter().filter_map(Tee::shown).collect();
    let taps = common.take_taps()?;
    let mut options: SpawnOptions = options.extract()?;
    let spec = options.added_to(spec);
    let argv = spec.argv.clone();
    let shown_as = options.shown_as.take();
    let channel = options.channel(py)?;
    let overflow = options.overflow(py)?;
    let stall_after = options.stall_after(py)?;
    expect_calls(py)?;
    let cancel = common.cancel.as_ref();
    let cancel = cancel.map(|cancel| cancel.get().handle());
    let input_wanted = common.input_wanted;
    let hook = HookPlace::new(common.on_event);
    let listening = Arc::clone(&hook);
    let next = next.map(StdinPieces::new);
    drop_deferred(py);
    let spawned = py.detach(|| {
        let mut command = Command::from_spec(spec)
            .stall_after(stall_after)
            .on_stream_event(listener(listening));
        if input_wanted {
            command = command.input_wanted();
        }
        if let Some(next) = next {
            command = command.stdin_iter(next);
        }
        for (stream, _, callable) in taps {
            command = command.tap_stream(stream, Box::new(ChunkTap::new(callable)));
        }
        command = tee::add_all(command, tees).map_err(NotSpawned::Tee)?;
        if let Some(channel) = channel {
            command = command.channel(channel);
        }
        if let Some(cancel) = &cancel {
            command = command.cancel_on(cancel);
        }
        command.spawn_with(overflow).map_err(NotSpawned::Core)
    });
    let mut child = match spawned {
        Ok(child) => child,
        Err(NotSpawned::Core(error)) => return Err(not_started(py, &error)),
        Err(NotSpawned::Tee(error)) => {
            let error = SpawnError::new(Step::Dup, tee::OWN, error);
            return Err(start_refused(py, &argv, error));
        }
    };
    Ok(Child {
        streams: Py::new(py, UntakenStreams::new(&mut child, shown_as))?,
        receiver: Mutex::new(child.receiver().ok()),
        is_shown: shown.contains(&child.last_words_of()),
        asked: OnceBox::new(),
        child,
        hook,
    })
}

/// Why nothing was spawned.
enum NotSpawned {
    Core(Error),
    Tee(io::Error),
}

impl Drop for Child {
    fn drop(&mut self) {
        // Its fields go afterwards, the hook perhaps for good: then it goes now.
        self.hook = HookPlace::empty();
        attach(|_| ());
    }
}

/// A wait for a child, or for room in its stdin, on an event loop.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct ChildWait {
    child: Py<Child>,
    wait: Mutex<procwright::ChildWait>,
}

#[pymethods]
impl ChildWait {
    /// What to sleep on: whether the end of the process ends the sleep, the descriptors that do,
    /// which stay this object's, and the seconds until then at the latest, none for no limit.
    fn sleep(&self, py: Python<'_>) -> PyResult<(bool, Vec<RawFd>, Option<f64>)> {
        let mut wait = self.wait.lock();
        let sleep = self.child.get().child.wait_sleep(&mut wait);
        let sleep = sleep.map_err(|error| not_waited(py, error))?;
        let readable = sleep.readable.iter().map(AsRawFd::as_raw_fd);
        let left = sleep.until.remaining(Instant::now());
        let left = left.map(|left| left.as_secs_f64());
        Ok((sleep.is_for_process, readable.collect(), left))
    }
}

/// The exception of a wait that has ended before the child.
pub(crate) fn not_waited(py: Python<'_>, error: WaitError) -> PyErr {
    match error {
        WaitError::Stalled(error) => stalled(py, &error),
        WaitError::Process(error) => errors::process(py, &error),
        WaitError::Copy(error) => copy_failed(py, error),
        WaitError::Stdin(error) => exception_of(py, error)
            .unwrap_or_else(|error| PyRuntimeError::new_err(error.to_string())),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

#[pymethods]
impl Child {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Another thread has it only for as long as it takes to make a reference. Then nothing
        // is found to be garbage this time.
        match self.hook.try_lock() {
            Some(hook) => visit.call(&*hook),
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        let hook = self.hook.take();
        drop(hook);
    }

    /// The receiver of its channel, which can be taken once.
    fn receiver(&self, py: Python<'_>) -> PyResult<Receiver> {
        let receiver = self.receiver.take();
        let none = || queue::Error::NoChannel("it was started without one from it".into());
        Receiver::from_result(py, receiver.ok_or_else(none))
    }

    /// The sender of its channel, which can be taken once: waits until the child's receiver
    /// is there.
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
        Sender::from_result(py, made, queue::Overflow::Block, None)
    }

    /// False in a fork of the process that has started it.
    fn is_ours(&self) -> bool {
        self.child.is_ours()
    }

    /// Closes the sender of its channel, unless that was taken.
    fn close_sender(&self) {
        self.child.close_sender();
    }

    /// The process, to ask about it, to signal it and to wait for it: always the same one, whose
    /// descriptor may be in an event loop.
    fn process(&self) -> ProcessHandle {
        ProcessHandle(self.asked.get_or_init(|| self.child.process()).clone())
    }

    /// The process for as long as it takes.
    fn handle(&self) -> ProcessHandle {
        ProcessHandle(self.child.process())
    }

    /// The streams that were not taken yet.
    fn streams(&self, py: Python<'_>) -> Py<UntakenStreams> {
        self.streams.clone_ref(py)
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
            Ok(Err(error)) => Err(not_waited(py, error)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(errors::system(&error, error.to_string())),
        }
    }

    /// The parts of a `Status` once a `wait` would have them, none before. Never blocks.
    fn wait_step<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let ended = py.detach(|| self.child.wait_step());
        let ended = ended.map_err(|error| not_waited(py, error))?;
        ended.map(|exit| status(py, exit)).transpose()
    }

    /// Pid, name and state of each process that could not be ended. On the main
    /// thread signal handlers run meanwhile; if one raises, that ends the grace, and
    /// is the error.
    fn stop(
        &self,
        py: Python<'_>,
        stop: Option<&Bound<'_, Stop>>,
    ) -> PyResult<Vec<process::RawSurvivor>> {
        let stop = stop.map_or_else(|| self.child.stop_policy(), |stop| stop.get().stop());
        let (survivors, raised) = while_stopping(py, |signals| match signals {
            Some((wakeup, pipe)) => {
                let ready = || wakeup.run_handlers();
                self.child.stop_watching(stop, pipe.as_fd(), ready)
            }
            None => (self.child.stop_with(stop), Ok(())),
        })?;
        raised?;
        Ok(process::survivors(survivors))
    }

    /// Whether stdout and stderr have not come to their ends, of those that come to us.
    fn open_outputs(&self) -> (bool, bool) {
        StdStream::BOTH
            .map(|output| self.child.has_open(output))
            .into()
    }

    /// Begins a wait for its end, or if it is `writing`, for room in its stdin.
    fn begin_wait(slf: Bound<'_, Self>, writing: bool) -> ChildWait {
        ChildWait {
            wait: Mutex::new(slf.get().child.begin_wait(writing)),
            child: slf.unbind(),
        }
    }

    /// Whether its process has not ended.
    fn is_alive(&self) -> bool {
        self.child.process().is_alive()
    }

    /// Ends it on a thread of its own, while its outputs are still taken. False if there is
    /// nothing to stop.
    fn stop_in_background(&self, py: Python<'_>) -> bool {
        let taken = self.streams.get().taken();
        py.detach(|| self.child.stop_in_background(taken))
    }

    /// What is to be said when a wait of so many seconds has come to its time, having read so
    /// much of both streams.
    fn explain_timeout(
        &self,
        py: Python<'_>,
        waited: f64,
        stdout: Option<PyBackedBytes>,
        stderr: Option<PyBackedBytes>,
    ) -> PyResult<String> {
        let waited = seconds("timeout", Some(waited)).map_err(|error| invalid(py, &error))?;
        let last_words = match self.child.last_words_of() {
            StdStream::Stdout => stdout,
            StdStream::Stderr => stderr,
        };
        let words = self.last_words(last_words.as_deref());
        Ok(py.detach(|| self.child.explain_timeout(waited, &words)))
    }

    /// The lines that say why it has not gone on for so many seconds; empty if that is no time, or
    /// not known.
    fn explain_silence(&self, py: Python<'_>, waited: f64) -> PyResult<String> {
        let waited = seconds("timeout", Some(waited)).map_err(|error| invalid(py, &error))?;
        Ok(py.detach(|| self.child.explain_silence(waited)))
    }

    /// The reason of a child that was stopped for a limit of its own.
    fn stopped_for(&self) -> Option<&'static str> {
        self.child.stopped_for().map(Reason::name)
    }

    /// What was started, as a person would type it.
    fn command_line(&self) -> String {
        self.child.command_line()
    }

    /// Whether the stop for a limit of its own goes on.
    fn is_stopping(&self) -> bool {
        self.child.is_stopping()
    }

    /// What is to be said of a program that has exited while others hold its outputs; None if it
    /// lives, or nobody holds what is read here.
    fn held(&self, py: Python<'_>) -> Option<String> {
        let event = py.detach(|| self.child.held());
        Some(event?.explain_to(UNTIL_EXIT))
    }

    /// Has its listener told who holds its outputs, on this thread. Nothing if it lives, or nobody
    /// does, or if `begins`, which is called behind the look, says that it is too late.
    fn tell_held(&self, py: Python<'_>, begins: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(event) = py.detach(|| self.child.held()) else {
            return Ok(());
        };
        let is_told = match begins {
            Some(begins) => begins.call0()?.is_truthy()?,
            None => true,
        };
        if is_told {
            listener(Arc::clone(&self.hook))(&event);
        }
        Ok(())
    }

    /// What it waits for.
    fn waiting_for<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let waiting = py.detach(|| self.child.waiting_for());
        let waiting = waiting.map_err(|error| explained::refused(py, &error))?;
        explained::waiting(&waiting).into_pyobject(py)
    }

    /// Why it does not end.
    fn explain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let diagnosis = py.detach(|| self.child.explain());
        let diagnosis = diagnosis.map_err(|error| explained::refused(py, &error))?;
        explained::diagnosis(&diagnosis).into_pyobject(py)
    }

    /// Sets the size of its terminal.
    fn resize(&self, rows: u16, columns: u16) -> PyResult<()> {
        let resized = self.child.resize(Size { rows, columns });
        resized.map_err(|error| match error.kind() {
            // A missing terminal, or one that is gone, is no error of the system's.
            io::ErrorKind::Unsupported => PyRuntimeError::new_err(error.to_string()),
            io::ErrorKind::NotConnected => PyBrokenPipeError::new_err(error.to_string()),
            _ => errors::system(&error, error.to_string()),
        })
    }

    /// Whether it has a terminal of its own.
    fn has_terminal(&self) -> bool {
        self.child.has_terminal()
    }

    /// Types the key that means the end of the input at its terminal, once its stdin is closed.
    /// Nothing if it has none, or nobody has that any more.
    fn type_end(&self) {
        // A terminal that takes no keys now has been typed at, and not been read since.
        let _ = self.child.type_end();
    }

    /// The report of a run, with what was read of both streams; none while it lives.
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
        let last_words = match report.last_words_of {
            StdStream::Stdout => &stdout,
            StdStream::Stderr => &stderr,
        };
        let read = last_words.as_ref().map(|data| data.as_bytes());
        let words = self.last_words(read);
        dict.set_item("explanation", report.explain_to(&words, UNTIL_EXIT))?;
        dict.set_item("stdout", &stdout)?;
        dict.set_item("stderr", &stderr)?;
        for none in ["merged", "error", "io_error"] {
            dict.set_item(none, py.None())?;
        }
        Ok(Some(dict))
    }
}

impl Child {
    /// The end of its stderr for those who tell of it: of what was read, or else of what came; none
    /// of what its tee has shown.
    fn last_words(&self, read: Option<&[u8]>) -> Vec<u8> {
        match read {
            _ if self.is_shown => Vec::new(),
            Some(read) if !read.is_empty() => read.to_vec(),
            _ => self.child.last_words().unwrap_or_default(),
        }
    }
}

/// The exception of a copy that has failed: what its writer has raised, or the system's error.
fn copy_failed(py: Python<'_>, error: BoxError) -> PyErr {
    exception_of(py, error).unwrap_or_else(|error| {
        let text = format!("tee: the copy is not whole: {error}");
        match error.downcast_ref::<io::Error>() {
            Some(error) => errors::system(error, text),
            None => PyRuntimeError::new_err(text),
        }
    })
}
