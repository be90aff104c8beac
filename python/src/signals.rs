//! Signals that come while this process waits without the interpreter lock.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::attach::attach;
use crate::raised::Raised;
use procwright::{BoxError, Demand, Moment, Watch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};
use rustix::pipe::{PipeFlags, pipe_with};

/// A pipe that is readable once a signal has come.
///
/// The two ends live as long as anything watches the pipe: one whose writing end is closed
/// would be readable for ever.
pub(crate) struct WakePipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl WakePipe {
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn new() -> io::Result<Arc<WakePipe>> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Arc::new(WakePipe { read, write }))
    }

    /// Calls `using` with a pipe that is kept for the next time: to make a pipe and to
    /// close it for each wait costs more than the wait.
    ///
    /// # Errors
    /// Those of [`new`](WakePipe::new).
    fn with_cached<T>(using: impl FnOnce(&Arc<WakePipe>) -> T) -> io::Result<T> {
        let id = std::process::id();
        // Taken out while it is used: a handler that waits has another one.
        let cached = CACHED.take().filter(|(owner, _)| *owner == id);
        let pipe = match cached {
            Some((_, pipe)) => pipe,
            // A fork does not use its parent's pipe: both would read from it.
            None => WakePipe::new()?,
        };
        let done = using(&pipe);
        CACHED.set(Some((id, pipe)));
        Ok(done)
    }

    /// Empties the pipe.
    fn drain(&self, mut each: impl FnMut(&[u8])) {
        let mut bytes = [0; 64];
        while let Ok(n) = rustix::io::read(&self.read, &mut bytes)
            && n > 0
        {
            each(&bytes[..n]);
            // A pipe gives all it has.
            if n < bytes.len() {
                break;
            }
        }
    }
}

thread_local! {
    /// The pipe of the main thread's latest wait, and the process that made it.
    static CACHED: Cell<Option<(u32, Arc<WakePipe>)>> = const { Cell::new(None) };
    /// The process in which this thread was seen not to be the main one. In a fork
    /// it is.
    static NOT_MAIN_IN: Cell<u32> = const { Cell::new(0) };
}

/// The reading end.
impl AsFd for WakePipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

/// Calls `wait` on the main thread, with Python's wake-up descriptor lent to it. None on
/// another thread, on which no handlers run: `wait` was not called.
///
/// # Errors
/// What `wait` gives, what a handler that was due has raised, and `refused` of the error
/// if there is no descriptor for a pipe.
pub(crate) fn on_main_thread<T>(
    py: Python<'_>,
    refused: impl FnOnce(io::Error) -> PyErr,
    wait: impl FnOnce(&mut WakeupFd, &Arc<WakePipe>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    if NOT_MAIN_IN.get() == std::process::id() {
        return Ok(None);
    }
    let waited = WakePipe::with_cached(|pipe| -> PyResult<Option<T>> {
        let Some(mut wakeup) = WakeupFd::lend(py, pipe)? else {
            return Ok(None);
        };
        let waited = wait(&mut wakeup, pipe);
        wakeup.restore(py);
        waited.map(Some)
    });
    let waited = match waited {
        Ok(waited) => waited?,
        // Nor is there a use for one.
        Err(_) if !is_main_thread(py)? => None,
        Err(error) => return Err(refused(error)),
    };
    if waited.is_none() {
        NOT_MAIN_IN.set(std::process::id());
        CACHED.set(None);
    }
    Ok(waited)
}

/// Whether signal handlers run on this thread.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}

/// Calls `stop` without the interpreter lock, on the main thread with what runs signal
/// handlers, and with the pipe that tells of signals.
///
/// A process is stopped even if there is no descriptor for the pipe; then handlers run later.
///
/// # Errors
/// What a handler that was due has raised.
pub(crate) fn while_stopping<T: Send>(
    py: Python<'_>,
    stop: impl FnOnce(Option<(&mut WakeupFd, &WakePipe)>) -> T + Send,
) -> PyResult<T> {
    let pipe = WakePipe::new().ok();
    let lent = pipe.as_ref().map(|pipe| WakeupFd::lend(py, pipe));
    let mut wakeup = lent.transpose()?.flatten();
    let stopped = py.detach(|| stop(wakeup.as_mut().zip(pipe.as_deref())));
    if let Some(wakeup) = wakeup {
        wakeup.restore(py);
    }
    Ok(stopped)
}

/// Python's wake-up descriptor (`signal.set_wakeup_fd`), lent to a wait.
///
/// Python's C handlers only note a signal, on whatever thread it comes; the main thread
/// then runs the handlers of the program. CPython writes to the wake-up descriptor in the
/// moment of the signal, so the wait misses none.
pub(crate) struct WakeupFd {
    pipe: Arc<WakePipe>,
    /// The descriptor of before, -1 for none.
    previous: i32,
    /// Bytes that came meanwhile for the owner of `previous`.
    for_previous: Vec<u8>,
}

impl WakeupFd {
    /// Lets signals write to `pipe`. None on any thread but the main one: handlers do not
    /// run there.
    ///
    /// # Errors
    /// Whatever a handler raises that was due already.
    pub(crate) fn lend(py: Python<'_>, pipe: &Arc<WakePipe>) -> PyResult<Option<WakeupFd>> {
        // Bytes of the pipe's last use must not be given to another owner.
        pipe.drain(|_| {});
        let previous = match set_wakeup_fd(py, pipe.write.as_raw_fd()) {
            Ok(previous) => previous,
            Err(error) if error.is_instance_of::<PyValueError>(py) => return Ok(None),
            Err(error) => return Err(error),
        };
        let wakeup = WakeupFd {
            pipe: Arc::clone(pipe),
            previous,
            for_previous: Vec::new(),
        };
        // Signals before this moment have written nothing here.
        match py.check_signals() {
            Ok(()) => Ok(Some(wakeup)),
            Err(error) => {
                wakeup.restore(py);
                Err(error)
            }
        }
    }

    /// Lends the descriptor again after handlers have run: an event loop that one of them
    /// ran took it, and left none when it was closed.
    fn lend_again(&mut self, py: Python<'_>) -> PyResult<()> {
        let ours = self.pipe.write.as_raw_fd();
        let found = set_wakeup_fd(py, ours)?;
        if found != ours {
            self.previous = found;
            // Signals before this moment have written nothing here.
            py.check_signals()?;
        }
        Ok(())
    }

    /// Empties the pipe, and keeps what it had for the owner of `previous`.
    fn drain(&mut self) {
        let WakeupFd {
            pipe, for_previous, ..
        } = self;
        pipe.drain(|bytes| for_previous.extend_from_slice(bytes));
    }

    /// Gives the descriptor back, and what came for its owner.
    ///
    /// Errors are dropped: they would take the place of what the wait has brought.
    pub(crate) fn restore(mut self, py: Python<'_>) {
        let found = match set_wakeup_fd(py, self.previous) {
            Ok(found) => found,
            // The owner has closed its descriptor meanwhile. Python would go on to write to
            // our pipe, which is closed soon, or to the next file that gets its number.
            Err(_) => set_wakeup_fd(py, -1).unwrap_or(-1),
        };
        if found != self.pipe.write.as_raw_fd() {
            // A handler has set another one since it was lent last.
            let _ = set_wakeup_fd(py, found);
        }
        if self.previous < 0 {
            return;
        }
        self.drain();
        if !self.for_previous.is_empty() {
            let bytes = PyBytes::new(py, &self.for_previous);
            // A full buffer wakes its reader as well.
            let _ = py
                .import("os")
                .and_then(|os| os.call_method1("write", (self.previous, bytes)));
        }
    }

    /// Runs the handlers of the signals that have come.
    ///
    /// # Errors
    /// What one of them raises.
    pub(crate) fn run_handlers(&mut self) -> PyResult<()> {
        self.drain();
        attach(|py| {
            py.check_signals()?;
            self.lend_again(py)
        })
        .unwrap_or(Ok(()))
    }
}

impl Watch for WakeupFd {
    fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    fn ready(&mut self, _run: Moment<'_>) -> Result<Demand, BoxError> {
        self.run_handlers().map_err(Raised::boxed_of_handler)?;
        Ok(Demand::Nothing)
    }
}

/// Calls `signal.set_wakeup_fd`, without its module: nothing else of that is needed here,
/// and a run calls this three times.
fn set_wakeup_fd(py: Python<'_>, fd: i32) -> PyResult<i32> {
    let (function, options) = set_wakeup_fd_of_python(py)?;
    let before = function.bind(py).call((fd,), Some(options.bind(py)))?;
    before.extract()
}

/// Finds what waits call. Called first when the module is imported: when the interpreter ends,
/// children are stopped at a time when nothing can be imported any more.
///
/// # Errors
/// Those of the import.
pub(crate) fn init(py: Python<'_>) -> PyResult<()> {
    set_wakeup_fd_of_python(py).map(drop)
}

/// The function, and the keywords that all calls of it have.
fn set_wakeup_fd_of_python(py: Python<'_>) -> PyResult<&'static (Py<PyAny>, Py<PyDict>)> {
    static FUNCTION: PyOnceLock<(Py<PyAny>, Py<PyDict>)> = PyOnceLock::new();
    FUNCTION.get_or_try_init(py, || {
        let options = PyDict::new(py);
        options.set_item("warn_on_full_buffer", false)?;
        let function = py.import("_signal")?.getattr("set_wakeup_fd")?;
        Ok((function.unbind(), options.unbind()))
    })
}
