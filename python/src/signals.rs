//! Signals that come while something waits without the interpreter lock.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use procwright::{BoxError, Demand, Moment, Watch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};
use rustix::pipe::{PipeFlags, pipe_with};

/// Where a signal rings: readable once one has come.
///
/// Both ends live as long as anyone watches it. A pipe whose writing end is
/// closed would ring for ever.
pub(crate) struct Bell {
    read: OwnedFd,
    write: OwnedFd,
}

impl Bell {
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn new() -> io::Result<Arc<Bell>> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Arc::new(Bell { read, write }))
    }

    /// One for `using`, kept for the next time: to make a pipe and to close it for
    /// each wait costs more than the wait.
    ///
    /// # Errors
    /// As [`new`](Bell::new).
    pub(crate) fn with_kept<T>(using: impl FnOnce(&Arc<Bell>) -> T) -> io::Result<T> {
        let id = std::process::id();
        // Away while it is used: a handler that waits has another one.
        let kept = KEPT.take().filter(|(owner, _)| *owner == id);
        let bell = match kept {
            Some((_, bell)) => bell,
            // In a fork it would be its parent's, too.
            None => Bell::new()?,
        };
        let done = using(&bell);
        KEPT.set(Some((id, bell)));
        Ok(done)
    }

    /// Keeps none on this thread, which has no use for it.
    pub(crate) fn keep_none() {
        KEPT.set(None);
    }

    /// Takes the rings out.
    fn heard(&self, mut heard: impl FnMut(&[u8])) {
        let mut rings = [0; 64];
        while let Ok(n) = rustix::io::read(&self.read, &mut rings)
            && n > 0
        {
            heard(&rings[..n]);
            // A pipe gives all it has.
            if n < rings.len() {
                break;
            }
        }
    }
}

thread_local! {
    /// The bell of the main thread's latest wait, and the process it is of.
    static KEPT: Cell<Option<(u32, Arc<Bell>)>> = const { Cell::new(None) };
}

/// The end to watch.
impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

/// Python's handlers only note a signal, on whatever thread it comes; the main
/// thread then runs the real ones. So that it learns of a signal in whatever
/// moment it comes, it lends its wake-up descriptor to what waits.
pub(crate) struct Signals {
    bell: Arc<Bell>,
    /// Who had it before, -1 for nobody.
    before: i32,
    /// What came for them meanwhile.
    seen: Vec<u8>,
}

impl Signals {
    /// Lets signals ring `bell`. None on any thread but the main one: handlers
    /// do not run there.
    ///
    /// # Errors
    /// Whatever a handler raises that was due already.
    pub(crate) fn lend(py: Python<'_>, bell: &Arc<Bell>) -> PyResult<Option<Signals>> {
        // Of its last use; it must not be told to others than it was for.
        bell.heard(|_| {});
        let before = match set_wakeup_fd(py, bell.write.as_raw_fd()) {
            Ok(before) => before,
            Err(error) if error.is_instance_of::<PyValueError>(py) => return Ok(None),
            Err(error) => return Err(error),
        };
        let signals = Signals {
            bell: Arc::clone(bell),
            before,
            seen: Vec::new(),
        };
        // What came before this moment has rung nobody.
        match py.check_signals() {
            Ok(()) => Ok(Some(signals)),
            Err(error) => {
                signals.restore(py);
                Err(error)
            }
        }
    }

    /// Lets signals ring again after handlers have run: an event loop that one of
    /// them ran took the descriptor, and left it to nobody when it was closed.
    pub(crate) fn renew(&mut self, py: Python<'_>) -> PyResult<()> {
        let bell = self.bell.write.as_raw_fd();
        let found = set_wakeup_fd(py, bell)?;
        if found != bell {
            self.before = found;
            // As in `lend`.
            py.check_signals()?;
        }
        Ok(())
    }

    /// Forgets the rings so far, but for those who had the descriptor before.
    pub(crate) fn silence(&mut self) {
        let Signals { bell, seen, .. } = self;
        bell.heard(|rings| seen.extend_from_slice(rings));
    }

    /// Gives the descriptor back, and what came for its owner.
    ///
    /// Without errors: they would take the place of what the wait has brought.
    pub(crate) fn restore(mut self, py: Python<'_>) {
        let found = match set_wakeup_fd(py, self.before) {
            Ok(found) => found,
            // Its owner has closed it meanwhile. Left as it is, it would name a
            // bell that is gone, or who has the number next.
            Err(_) => set_wakeup_fd(py, -1).unwrap_or(-1),
        };
        if found != self.bell.write.as_raw_fd() {
            // Since the last look a handler has given it to somebody else.
            let _ = set_wakeup_fd(py, found);
        }
        if self.before < 0 {
            return;
        }
        self.silence();
        if !self.seen.is_empty() {
            let rings = PyBytes::new(py, &self.seen);
            // A full buffer wakes its reader as well.
            let _ = py
                .import("os")
                .and_then(|os| os.call_method1("write", (self.before, rings)));
        }
    }

    /// Runs the handlers of the signals that have come. An exception of one of
    /// them is the error.
    pub(crate) fn run_handlers(&mut self) -> PyResult<()> {
        self.silence();
        Python::try_attach(|py| {
            py.check_signals()?;
            self.renew(py)
        })
        .unwrap_or(Ok(()))
    }
}

impl Watch for Signals {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn ready(&mut self, _run: Moment<'_>) -> Result<Demand, BoxError> {
        self.run_handlers()?;
        Ok(Demand::Nothing)
    }
}

/// `signal.set_wakeup_fd`, without its module: that is all of Python's that is
/// needed here, and a run asks for it three times.
fn set_wakeup_fd(py: Python<'_>, fd: i32) -> PyResult<i32> {
    static FUNCTION: PyOnceLock<(Py<PyAny>, Py<PyDict>)> = PyOnceLock::new();
    let (function, options) = FUNCTION.get_or_try_init(py, || {
        let options = PyDict::new(py);
        options.set_item("warn_on_full_buffer", false)?;
        let function = py.import("_signal")?.getattr("set_wakeup_fd")?;
        PyResult::Ok((function.unbind(), options.unbind()))
    })?;
    let before = function.bind(py).call((fd,), Some(options.bind(py)))?;
    before.extract()
}
