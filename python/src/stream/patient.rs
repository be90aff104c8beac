//! Blocking without the interpreter lock, and with signals.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use procwright::stream::Patience;
use procwright::time::Deadline;
use pyo3::prelude::*;

use crate::signals::{Bell, Signals};

/// Runs `operation` until it is done, without the interpreter lock. On the main
/// thread signal handlers run meanwhile; if one raises, that is the outer error,
/// and the operation was not done. It has to be one that can be taken up again.
pub(crate) fn patiently<T: Send>(
    py: Python<'_>,
    deadline: Deadline,
    mut operation: impl FnMut(Patience<'_>) -> io::Result<T> + Send,
) -> PyResult<io::Result<T>> {
    let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    // Mostly something is there already. Then no signal has to be watched for, which
    // costs more than the read.
    let now = Patience::until(Deadline::at(Instant::now()));
    match py.detach(|| operation(now)) {
        Err(error) if is_late(&error) => {}
        done => return Ok(done),
    }
    if Watcher::is_possible() {
        let waited = Bell::with_kept(|bell| with_signals(py, deadline, bell, &mut operation))?;
        if let Some(done) = waited.transpose() {
            return done;
        }
        Watcher::is_not();
        Bell::keep_none();
    }
    Ok(py.detach(|| operation(Patience::until(deadline))))
}

/// None on another thread than the main one.
fn with_signals<T: Send>(
    py: Python<'_>,
    deadline: Deadline,
    bell: &Arc<Bell>,
    operation: &mut (impl FnMut(Patience<'_>) -> io::Result<T> + Send),
) -> PyResult<Option<io::Result<T>>> {
    let Some(mut signals) = Signals::lend(py, bell)? else {
        return Ok(None);
    };
    let patience = Patience::until(deadline).or_readable(bell.as_fd());
    let outcome = loop {
        match py.detach(|| operation(patience)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => break Ok(Some(done)),
        }
        if let Err(raised) = signals.run_handlers() {
            break Err(raised);
        }
    };
    signals.restore(py);
    outcome
}

/// Whether this may be the main thread, which alone runs handlers.
pub(crate) struct Watcher;

thread_local! {
    /// The process in which this thread was seen not to be the main one. In a fork
    /// it is.
    static OTHER: Cell<u32> = const { Cell::new(0) };
}

impl Watcher {
    pub(crate) fn is_possible() -> bool {
        OTHER.with(|other| other.get() != std::process::id())
    }

    pub(crate) fn is_not() {
        OTHER.with(|other| other.set(std::process::id()));
    }
}
