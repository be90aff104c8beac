//! A place for an end of a queue, which many Python threads may have and one may use.

use std::sync::MutexGuard;

use procwright::queue::Waker;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use super::deferred::Deferred;
use super::errors::Unavailable;
use procwright_os::sync::Mutex;

/// A place for an end of a queue. A call takes the end out, so that no other is inside
/// meanwhile, in whatever way it got here: from another thread, from a signal handler of
/// this very call, from code that is unpickled.
pub(crate) struct Endpoint<T> {
    /// Locked with the interpreter lock held and for a moment only, so that no fork
    /// finds it locked.
    state: Mutex<EndpointState<T>>,
    /// The process that made it.
    process: u32,
    /// Wakes a call that sleeps with the end, or an event loop that watches its descriptor.
    waker: Option<Waker>,
    /// Errors and objects that the next call of a receiver has to raise or to give first.
    deferred: Deferred,
}

struct EndpointState<T> {
    end: EndSlot<T>,
    /// The end is to be dropped once it is back, and not watched.
    is_closing: bool,
    /// An event loop has its descriptor, which must not be closed under it: no loop is
    /// told of that.
    is_watched: bool,
}

enum EndSlot<T> {
    Present(Box<T>),
    /// A call uses it.
    InUse,
    /// Memory of it is lent to an object of Python's.
    Lent,
    Closed,
}

impl<T> Endpoint<T> {
    pub(super) fn new(end: T, waker: Option<Waker>) -> Endpoint<T> {
        Endpoint {
            state: Mutex::new(EndpointState {
                end: EndSlot::Present(Box::new(end)),
                is_closing: false,
                is_watched: false,
            }),
            process: std::process::id(),
            waker,
            deferred: Deferred::default(),
        }
    }

    /// Takes the end out.
    ///
    /// # Errors
    /// If another call has it, or it is closed.
    pub(super) fn take_out(&self) -> Result<Box<T>, Unavailable> {
        let unavailable = {
            let mut state = self.state.lock();
            let slot = std::mem::replace(&mut state.end, EndSlot::InUse);
            match slot {
                // An event loop still watches it: so it is not dropped yet.
                EndSlot::Present(end) if state.is_closing => {
                    state.end = EndSlot::Present(end);
                    return Err(Unavailable::Closed);
                }
                EndSlot::Present(end) => return Ok(end),
                EndSlot::Closed => {
                    state.end = EndSlot::Closed;
                    return Err(Unavailable::Closed);
                }
                EndSlot::Lent => {
                    state.end = EndSlot::Lent;
                    Unavailable::Lent
                }
                EndSlot::InUse => Unavailable::Busy,
            }
        };
        match self.is_inherited() {
            true => Err(Unavailable::Forked),
            false => Err(unavailable),
        }
    }

    /// Puts the end back, or drops it if it was closed meanwhile.
    pub(super) fn put_back(&self, end: Box<T>) {
        let mut state = self.state.lock();
        if state.is_closing && state.is_watched {
            // The end may have taken in the wake-up that was for the event loop.
            self.wake();
        }
        if !state.is_closing || state.is_watched {
            state.end = EndSlot::Present(end);
            return;
        }
        state.end = EndSlot::Closed;
        drop(state);
        drop(end);
    }

    /// Errors and objects that the next call has to raise or to give first. None if there are
    /// none, or in a fork: those are the other process's.
    pub(super) fn deferred(&self) -> Option<&Deferred> {
        (self.deferred.is_some() && !self.is_inherited()).then_some(&self.deferred)
    }

    /// True if the next call has something to raise or to give first.
    pub(super) fn has_deferred(&self) -> bool {
        self.deferred.is_some()
    }

    /// # Errors
    /// What was deferred.
    pub(super) fn raise_deferred(&self, py: Python<'_>) -> PyResult<()> {
        self.deferred()
            .map_or(Ok(()), |deferred| deferred.raise(py))
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.deferred.traverse(visit)
    }

    /// Drops what was deferred, which is garbage.
    pub(super) fn clear_deferred(&self) {
        self.deferred.clear();
    }

    /// Defers an error to the next call that receives.
    pub(super) fn defer_error(&self, py: Python<'_>, error: PyErr) {
        self.deferred.defer_error(py, error);
        self.wake();
    }

    /// Defers objects to the next call that receives objects.
    pub(super) fn defer_objects(&self, objects: Vec<Py<PyAny>>) {
        self.deferred.defer_objects(objects);
        self.wake();
    }

    /// Drops the end: now, or once the call that has it is done and no event loop watches
    /// it. Both are woken for that.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        match state.end {
            EndSlot::Present(_) if !state.is_watched => Self::drop_if_present(state),
            _ => self.wake(),
        }
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }

    fn drop_if_present(mut state: MutexGuard<'_, EndpointState<T>>) {
        if matches!(state.end, EndSlot::Present(_)) {
            let dropped = std::mem::replace(&mut state.end, EndSlot::Closed);
            drop(state);
            drop(dropped);
        }
    }

    /// Allows an event loop to watch its descriptor from now on. False if one does already.
    pub(super) fn watch(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().is_watched, true)
    }

    /// Ends what `watch` has begun.
    pub(super) fn unwatch(&self) {
        let mut state = self.state.lock();
        state.is_watched = false;
        if state.is_closing {
            Self::drop_if_present(state);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closing
    }

    /// Notes that the end, which is out, has lent memory to an object of Python's: other
    /// calls are told so.
    pub(super) fn mark_lent(&self) {
        self.state.lock().end = EndSlot::Lent;
    }

    /// True in a fork of the process that made it. The core knows that better, but not where
    /// the end is out.
    pub(super) fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }
}
