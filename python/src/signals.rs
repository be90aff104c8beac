//! Signals that come while something waits without the interpreter lock.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use procwright::{BoxError, Demand, Moment, Watch};
use pyo3::prelude::*;
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
        let Ok(before) = set_wakeup_fd(py, bell.write.as_raw_fd()) else {
            return Ok(None);
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
                signals.restore(py)?;
                Err(error)
            }
        }
    }

    /// Forgets the rings so far, but for those who had the descriptor before.
    pub(crate) fn silence(&mut self) {
        let mut rings = [0; 64];
        while let Ok(n) = rustix::io::read(&self.bell.read, &mut rings)
            && n > 0
        {
            self.seen.extend_from_slice(&rings[..n]);
        }
    }

    /// Gives the descriptor back, and what came for its owner.
    pub(crate) fn restore(mut self, py: Python<'_>) -> PyResult<()> {
        set_wakeup_fd(py, self.before)?;
        self.silence();
        if self.before >= 0 && !self.seen.is_empty() {
            let rings = PyBytes::new(py, &self.seen);
            // A full buffer wakes its reader as well.
            let _ = py.import("os")?.call_method1("write", (self.before, rings));
        }
        Ok(())
    }
}

impl Watch for Signals {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Runs the handlers of the signals that have come. An exception of one of
    /// them is the error.
    fn ready(&mut self, _run: Moment) -> Result<Demand, BoxError> {
        self.silence();
        match Python::try_attach(|py| py.check_signals()) {
            Some(Err(error)) => Err(error.into()),
            _ => Ok(Demand::Nothing),
        }
    }
}

fn set_wakeup_fd(py: Python<'_>, fd: i32) -> PyResult<i32> {
    let options = PyDict::new(py);
    options.set_item("warn_on_full_buffer", false)?;
    py.import("_signal")?
        .getattr("set_wakeup_fd")?
        .call((fd,), Some(&options))?
        .extract()
}
