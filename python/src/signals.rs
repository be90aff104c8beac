//! Signals that come while a run waits without the interpreter lock.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use procwright::BoxError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rustix::pipe::{PipeFlags, pipe_with};

/// Python's handlers only note a signal, on whatever thread it comes; the main
/// thread then runs the real ones. So that it learns of a signal in whatever
/// moment it comes, it lends its wake-up descriptor to the run.
pub(crate) struct Signals {
    pipe: OwnedFd,
    _write: OwnedFd,
    /// Who had it before, -1 for nobody.
    before: i32,
    /// What came for them meanwhile.
    seen: Vec<u8>,
}

impl Signals {
    /// None on any thread but the main one: handlers do not run there.
    pub(crate) fn watch(py: Python<'_>) -> PyResult<Option<Signals>> {
        let Ok((pipe, write)) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) else {
            // Out of descriptors: then a signal is seen when it interrupts a
            // wait, which is nearly always.
            return Ok(None);
        };
        let Ok(before) = set_wakeup_fd(py, write.as_raw_fd()) else {
            return Ok(None);
        };
        let signals = Signals {
            pipe,
            _write: write,
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
    pub(crate) fn silence(pipe: BorrowedFd<'_>, seen: &mut Vec<u8>) {
        let mut rings = [0; 64];
        while let Ok(n) = rustix::io::read(pipe, &mut rings)
            && n > 0
        {
            seen.extend_from_slice(&rings[..n]);
        }
    }

    pub(crate) fn parts(&mut self) -> (BorrowedFd<'_>, &mut Vec<u8>) {
        (self.pipe.as_fd(), &mut self.seen)
    }

    /// Gives the descriptor back, and what came for its owner.
    pub(crate) fn restore(mut self, py: Python<'_>) -> PyResult<()> {
        set_wakeup_fd(py, self.before)?;
        let (pipe, seen) = self.parts();
        Signals::silence(pipe, seen);
        if self.before >= 0 && !self.seen.is_empty() {
            let rings = PyBytes::new(py, &self.seen);
            // A full buffer wakes its reader as well.
            let _ = py.import("os")?.call_method1("write", (self.before, rings));
        }
        Ok(())
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

/// Runs the handlers of the signals that have come. An exception of one of them
/// is the error.
pub(crate) fn check() -> Result<(), BoxError> {
    Python::try_attach(|py| py.check_signals())
        .unwrap_or(Ok(()))
        .map_err(BoxError::from)
}
