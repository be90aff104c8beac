//! `spawn_pipeline`: a pipeline that its caller holds; `procwright/_pipeline_child.py` wraps it.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use procwright::pipeline::{Error, PipelineReport};
use procwright::stream::Patience;
use procwright::time::Deadline;
use procwright::{BoxError, Command, Event, pipeline};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::attach::{attach, drop_deferred, expect_calls};
use crate::errors::{invalid, pipeline_not_started, system};
use crate::events::{EventHook, HookPlace, listener};
use crate::options::{RawOverflow, overflow};
use crate::patient::patiently;
use crate::pipeline::{PipelineOptions, put_failure, refused, result};
use crate::report::UNTIL_EXIT;
use crate::stream::{UntakenStreams, stalled};
use crate::taps::StdinPieces;
use crate::values::seconds;
use procwright_os::sync::Mutex;

/// A pipeline that was started.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct PipelineChild {
    pub(crate) child: pipeline::PipelineChild,
    /// Those of each stage.
    streams: Vec<Py<UntakenStreams>>,
    hook: EventHook,
}

/// The options that are for a pipeline which its caller holds alone, from the same dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct HeldOptions {
    overflow: RawOverflow,
    stall_after: Option<f64>,
}

/// Starts programs that are joined by pipes, and leaves them to the caller.
#[pyfunction]
#[pyo3(signature = (options, /))]
pub(crate) fn spawn_pipeline(
    py: Python<'_>,
    options: &Bound<'_, PyDict>,
) -> PyResult<PipelineChild> {
    let held: HeldOptions = options.extract()?;
    let options: PipelineOptions<'_> = options.extract()?;
    let whole = options.whole(py)?;
    let (specs, next) = options.specs(py)?;
    let overflow = overflow(py, &held.overflow)?;
    let stall_after = seconds("stall_after", held.stall_after);
    let stall_after = stall_after.map_err(|error| invalid(py, &error))?;
    expect_calls(py)?;
    let hook = HookPlace::new(options.on_event);
    let listening = Arc::clone(&hook);
    let mut next = next.map(StdinPieces::new);
    drop_deferred(py);
    let spawned = py.detach(|| {
        let stages = specs.into_iter().map(|spec| {
            let command = Command::from_spec(spec)
                .stall_after(stall_after)
                .on_stream_event(listener(Arc::clone(&listening)))
                .on_event(told_by(listener(Arc::clone(&listening))))
                .until_exit_written_as(UNTIL_EXIT);
            match next.take() {
                Some(next) => command.stdin_iter(next),
                None => command,
            }
        });
        whole.of(stages).spawn_with(overflow)
    });
    let mut child = spawned.map_err(|error| pipeline_not_started(py, &error))?;
    let mut stdin = child.stdin.take();
    let mut stdout = child.stdout.take();
    let last = child.stderr.len() - 1;
    let stderr = std::mem::take(&mut child.stderr);
    let parts = child.stage_command_lines().zip(stderr);
    let streams = parts.enumerate().map(|(place, (command, stderr))| {
        let stdin = stdin.take_if(|_| place == 0);
        let stdout = stdout.take_if(|_| place == last);
        Py::new(
            py,
            UntakenStreams::of_stage(command, stdin, [stdout, stderr]),
        )
    });
    let streams = streams.collect::<PyResult<_>>()?;
    Ok(PipelineChild {
        streams,
        child,
        hook,
    })
}

/// A hook of a run that `listener` stands for, which keeps what the callable raises.
fn told_by(
    mut listener: impl FnMut(&Event) + Send + 'static,
) -> impl FnMut(&Event) -> Result<(), BoxError> + Send + 'static {
    move |event| {
        listener(event);
        Ok(())
    }
}

impl Drop for PipelineChild {
    fn drop(&mut self) {
        // Its fields go afterwards, the hook perhaps for good: then it goes now.
        self.hook = HookPlace::empty();
        attach(|_| ());
    }
}

/// A wait for a pipeline, or for room in its stdin, on an event loop.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct PipelineWait {
    child: Py<PipelineChild>,
    wait: Mutex<pipeline::PipelineWait>,
}

#[pymethods]
impl PipelineWait {
    /// What to sleep on, as that of a child tells: no process ends the sleep.
    fn sleep(&self, py: Python<'_>) -> PyResult<(bool, Vec<RawFd>, Option<f64>)> {
        let mut wait = self.wait.lock();
        let sleep = self.child.get().child.wait_sleep(&mut wait);
        let sleep = sleep.map_err(|error| stalled(py, &error))?;
        let readable = sleep.readable.iter().map(AsRawFd::as_raw_fd);
        let left = sleep.until.remaining(Instant::now());
        let left = left.map(|left| left.as_secs_f64());
        Ok((false, readable.collect(), left))
    }
}

#[pymethods]
impl PipelineChild {
    /// Begins a wait for its end, or if it is `writing`, for room in its stdin.
    fn begin_wait(slf: Bound<'_, Self>, writing: bool) -> PipelineWait {
        PipelineWait {
            wait: Mutex::new(slf.get().child.begin_wait(writing)),
            child: slf.unbind(),
        }
    }

    /// Whether it is over. Never blocks.
    fn wait_step(&self, py: Python<'_>) -> PyResult<bool> {
        match self.child.wait(Duration::ZERO) {
            // A stall is told by the sleep.
            Ok(None) | Err(Error::Stalled(_)) => Ok(false),
            Ok(Some(_)) => Ok(true),
            Err(error) => Err(refused(py, &error)),
        }
    }

    /// A descriptor that is readable once it is over. It stays this object's.
    fn readiness_fd(&self) -> RawFd {
        self.child.readiness().as_raw_fd()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // As that of a child.
        match self.hook.try_lock() {
            Some(hook) => visit.call(&*hook),
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        let hook = self.hook.take();
        drop(hook);
    }

    /// False in a fork of the process that has started it.
    fn is_ours(&self) -> bool {
        self.child.is_ours()
    }

    /// The numbers of the stages' processes.
    fn pids(&self) -> Vec<i32> {
        self.child.pids().to_vec()
    }

    /// The streams of each stage, to be taken out.
    fn streams(&self, py: Python<'_>) -> Vec<Py<UntakenStreams>> {
        let streams = self.streams.iter();
        streams.map(|streams| streams.clone_ref(py)).collect()
    }

    /// Whether it goes on. Never blocks.
    fn is_alive(&self) -> bool {
        // A stall is told by those who wait.
        let waited = self.child.wait(Duration::ZERO);
        matches!(waited, Ok(None) | Err(Error::Stalled(_)))
    }

    /// Whether all are being stopped, and not since that was asked for here: a wait is for the end
    /// of that as well.
    fn is_stopping(&self) -> bool {
        self.child.is_stopping()
    }

    /// Waits until it is over; false if the timeout came first. On the main thread signal handlers
    /// run meanwhile, and what one raises is the error.
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let deadline = timeout.starting(Instant::now());
        self.patiently(py, deadline, |patience| self.child.wait_with(patience))
    }

    /// Has all stages stopped, without a grace if `at_once`, and waits until it is over. On the
    /// main thread signal handlers run meanwhile; if one raises, that ends the grace, and is the
    /// error.
    fn stop(&self, py: Python<'_>, at_once: bool) -> PyResult<()> {
        let stopped = self.patiently(py, Deadline::NEVER, |patience| {
            self.child.stop_with(at_once, patience)
        });
        if stopped.is_err() {
            // Nothing in a fork, where that was the error.
            py.detach(|| drop(self.child.kill()));
        }
        stopped.map(drop)
    }

    /// Has all stages stopped, without a grace if `at_once`, and returns at once.
    fn begin_stop(&self, at_once: bool) {
        self.child.begin_stop(at_once);
    }

    /// Has it stopped for whoever had it last. False if there is nothing to stop.
    fn stop_in_background(&self, py: Python<'_>) -> bool {
        py.detach(|| self.child.stop_in_background())
    }

    /// What is to be said when a wait of so many seconds has come to its time.
    fn explain_timeout(&self, py: Python<'_>, waited: Option<f64>) -> PyResult<String> {
        let waited = seconds("timeout", waited).map_err(|error| invalid(py, &error))?;
        Ok(py.detach(|| self.child.explain_timeout(waited)))
    }

    /// The lines that say why it has not gone on for so many seconds; empty if that is no time, or
    /// not known.
    fn explain_silence(&self, py: Python<'_>, waited: f64) -> PyResult<String> {
        let waited = seconds("timeout", Some(waited)).map_err(|error| invalid(py, &error))?;
        Ok(py.detach(|| self.child.explain_silence(waited)))
    }

    /// The result, with what was read of stdout of the last stage and of stderr of each; none
    /// while it goes on. What is to be raised is in the first that is asked for.
    fn report<'py>(
        &self,
        py: Python<'py>,
        stdout: Option<Py<PyBytes>>,
        stderr: Vec<Option<Py<PyBytes>>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(report) = self.child.report() else {
            return Ok(None);
        };
        let words = stderr.iter().enumerate().map(|(place, read)| {
            let read = read.as_ref().map_or(&[][..], |read| read.as_bytes(py));
            match read.is_empty() {
                true => self.child.last_words(place).unwrap_or_default(),
                false => read,
            }
        });
        let words: Vec<&[u8]> = words.collect();
        let dict = result(py, report, &[stdout], &stderr, &words)?;
        put_failure(&dict, report, self.child.take_failure())?;
        Ok(Some(dict))
    }
}

impl PipelineChild {
    /// Waits until it is over, by `wait`; false if the deadline comes first.
    fn patiently<'a>(
        &self,
        py: Python<'_>,
        deadline: Deadline,
        wait: impl Fn(Patience<'_>) -> Result<Option<&'a PipelineReport>, Error> + Sync,
    ) -> PyResult<bool> {
        let waited = patiently(py, deadline, |patience| match wait(patience) {
            Ok(Some(_)) => Ok(Ok(())),
            Ok(None) => Err(io::ErrorKind::TimedOut.into()),
            Err(Error::Interrupted { .. }) => Err(io::ErrorKind::Interrupted.into()),
            Err(error) => Ok(Err(error)),
        })?;
        match waited {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => Err(refused(py, &error)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(system(&error, error.to_string())),
        }
    }
}
