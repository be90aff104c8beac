//! Blocking without the interpreter lock, and with signals.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use procwright::stream::Patience;
use procwright::time::Deadline;
use procwright::wait::{Event, Outcome, Waitable, Want};
use pyo3::prelude::*;

use crate::errors;
use crate::signals::on_main_thread;

/// Runs `operation` until it is done, without the interpreter lock. On the main
/// thread signal handlers run meanwhile; if one raises, that is the outer error,
/// and the operation was not done. It has to be one that can be taken up again.
pub(crate) fn patiently<T: Send>(
    py: Python<'_>,
    deadline: Deadline,
    mut operation: impl FnMut(Patience<'_>) -> io::Result<T> + Send,
) -> PyResult<io::Result<T>> {
    patiently_with(py, deadline, &mut operation)
}

/// [`patiently`], which calls itself.
fn patiently_with<T: Send>(
    py: Python<'_>,
    deadline: Deadline,
    operation: &mut (dyn FnMut(Patience<'_>) -> io::Result<T> + Send),
) -> PyResult<io::Result<T>> {
    let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    // Mostly something is there already. Then no signal has to be watched for, which
    // costs more than the read.
    let now = Patience::until(Deadline::at(Instant::now()));
    match py.detach(|| operation(now)) {
        Err(error) if is_late(&error) => {}
        done => return Ok(done),
    }
    let refused = |error: io::Error| errors::system(&error, format!("cannot wait: {error}"));
    let waited = on_main_thread(py, refused, |wakeup, pipe| {
        let patience = Patience::until(deadline).or_readable(pipe.as_fd());
        let process = std::process::id();
        loop {
            match py.detach(|| operation(patience)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return Ok(done),
            }
            wakeup.run_handlers()?;
            if std::process::id() != process {
                // A handler has forked. The pipe is the parent's, which takes from it what
                // tells of signals here.
                return patiently_with(py, deadline, operation);
            }
        }
    })?;
    match waited {
        Some(done) => Ok(done),
        None => Ok(py.detach(|| operation(Patience::until(deadline)))),
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
    on_main_thread(
        py,
        |error| refused(&error),
        |wakeup, pipe| {
            let mut set = procwright::WaitSet::new().map_err(|error| refused(&error))?;
            let added = set.add(item, Event::Exited);
            added.map_err(|error| refused(&error))?;
            let lent = set.cancel_on(Arc::clone(pipe));
            lent.map_err(|error| refused(&error))?;
            loop {
                let waited = py.detach(|| set.wait_until(Want::Any, deadline));
                let waited = waited.map_err(|error| refused(&error))?;
                if waited.outcome != Outcome::Cancelled {
                    return Ok(!waited.ended.is_empty());
                }
                wakeup.run_handlers()?;
            }
        },
    )
}
