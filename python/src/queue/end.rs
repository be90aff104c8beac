//! One end of a queue, which many Python threads may have and one may use.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use procwright::queue::Waker;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use super::errors::away;
use super::later::Later;
use super::loan::{Lends, Loan};

/// An end of a queue. Whoever uses it takes it out, so that nobody else is inside
/// meanwhile, in whatever way they got here: another thread, a signal handler of this
/// very call, code that is unpickled.
pub(crate) struct End<T> {
    /// Locked with the interpreter lock held and for a moment only, so that no fork
    /// finds it locked.
    state: Mutex<State<T>>,
    /// Whose it is.
    process: u32,
    /// Wakes who sleeps with it, or watches its descriptor.
    waker: Option<Waker>,
    /// Of a receiver.
    later: Later,
}

struct State<T> {
    place: Place<T>,
    /// To be dropped by whoever has it out, or watches it.
    is_closing: bool,
    /// An event loop has its descriptor, which must not be closed under it: no loop is
    /// told of that.
    is_watched: bool,
}

enum Place<T> {
    Here(Box<T>),
    /// Somebody uses it.
    Out,
    /// Memory of it is lent to an object of Python's.
    Lent,
    Closed,
}

/// Why it cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Away {
    Busy,
    Lent,
    Closed,
    /// It was out when this process was forked.
    Forked,
}

impl<T> End<T> {
    pub(super) fn new(item: T, waker: Option<Waker>) -> End<T> {
        End {
            state: Mutex::new(State {
                place: Place::Here(Box::new(item)),
                is_closing: false,
                is_watched: false,
            }),
            process: std::process::id(),
            waker,
            later: Later::default(),
        }
    }

    /// What is to be told, or given, before all that comes. None in a fork: that is the
    /// other process's.
    pub(super) fn later(&self) -> Option<&Later> {
        (self.later.is_some() && !self.is_inherited()).then_some(&self.later)
    }

    /// Tells that.
    ///
    /// # Errors
    /// What was put off.
    pub(super) fn tell(&self, py: Python<'_>) -> PyResult<()> {
        self.later().map_or(Ok(()), |later| later.tell(py))
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.later.traverse(visit)
    }

    /// What was put off is garbage.
    pub(super) fn forget(&self) {
        self.later.clear();
    }

    /// The next one to receive is told that.
    pub(super) fn put_off(&self, py: Python<'_>, error: PyErr) {
        self.later.put_off(py, error);
        self.wake();
    }

    /// The next one to receive objects has those first.
    pub(super) fn keep(&self, objects: Vec<Py<PyAny>>) {
        self.later.keep(objects);
        self.wake();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops it, now or as soon as whoever has it out is done, or who watches it, who is
    /// woken for that.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closing = true;
        match state.place {
            Place::Here(_) if !state.is_watched => Self::drop_if_here(state),
            _ => self.wake(),
        }
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }

    fn drop_if_here(mut state: MutexGuard<'_, State<T>>) {
        if matches!(state.place, Place::Here(_)) {
            let dropped = std::mem::replace(&mut state.place, Place::Closed);
            drop(state);
            drop(dropped);
        }
    }

    /// From now on an event loop may watch its descriptor. False if one does already.
    pub(super) fn watch(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_watched, true)
    }

    /// It does no more.
    pub(super) fn unwatch(&self) {
        let mut state = self.lock();
        state.is_watched = false;
        if state.is_closing {
            Self::drop_if_here(state);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closing
    }

    /// It is lent to an object of Python's: whoever wants it meanwhile is told so.
    pub(super) fn lent(&self) {
        self.lock().place = Place::Lent;
    }

    /// Whether this process is a fork of the one whose end it is. The core knows
    /// that better, but not where the end is out.
    pub(super) fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }
}

/// An end that was taken out of its place, to which it goes back.
pub(crate) struct Use<E: Deref<Target = End<T>>, T> {
    end: E,
    /// Owned. Not a `Box`, which what is lent of it may not lie in.
    item: NonNull<T>,
}

// SAFETY: only the pointer keeps it from being so by itself, and that is as good as
// the `Box` that it was made of.
unsafe impl<E: Deref<Target = End<T>> + Send, T: Send> Send for Use<E, T> {}

impl<T, E: Deref<Target = End<T>>> Use<E, T> {
    /// # Errors
    /// If somebody else uses it, or it is closed.
    pub(super) fn of(end: E) -> Result<Use<E, T>, Away> {
        let away = {
            let mut state = end.lock();
            let place = std::mem::replace(&mut state.place, Place::Out);
            match place {
                // Closed, and somebody watches it yet.
                Place::Here(item) if state.is_closing => {
                    state.place = Place::Here(item);
                    return Err(Away::Closed);
                }
                Place::Here(item) => {
                    drop(state);
                    let item = NonNull::from(Box::leak(item));
                    return Ok(Use { end, item });
                }
                Place::Closed => {
                    state.place = Place::Closed;
                    return Err(Away::Closed);
                }
                Place::Lent => {
                    state.place = Place::Lent;
                    Away::Lent
                }
                Place::Out => Away::Busy,
            }
        };
        match end.is_inherited() {
            true => Err(Away::Forked),
            false => Err(away),
        }
    }

    /// The same, and who cannot have it is told why.
    ///
    /// # Errors
    /// `Busy`, `EndClosed`, `Forked`.
    pub(super) fn take(py: Python<'_>, end: E) -> PyResult<Use<E, T>>
    where
        T: Lends,
    {
        Use::of(end).map_err(|why| away(py, why, T::SIDE))
    }

    pub(super) fn end(&self) -> &End<T> {
        &self.end
    }

    pub(super) fn place(&self) -> &E {
        &self.end
    }

    /// Whether there is something to be told, or given, before all that comes.
    pub(crate) fn has_kept(&self) -> bool {
        self.end.later.is_some()
    }

    /// Whether somebody has closed it meanwhile.
    pub(crate) fn is_closed(&self) -> bool {
        self.end.is_closed()
    }

    /// Lends something of it, for as long as the loan lasts.
    ///
    /// # Errors
    /// Those of `make`, and the end again.
    pub(super) fn lend<X>(
        self,
        make: impl for<'a> FnOnce(&'a mut T) -> Result<T::Lent<'a>, X>,
    ) -> Result<Loan<E, T>, (Use<E, T>, X)>
    where
        T: Lends,
    {
        // SAFETY: it is owned, and outlives what is lent, which the loan drops first.
        // Until then the loan lets nobody get at it. `make` works for any lifetime,
        // so it has kept nothing elsewhere.
        let item = unsafe { &mut *self.item.as_ptr() };
        match make(item) {
            Ok(lent) => Ok(Loan { lent, of: self }),
            Err(error) => Err((self, error)),
        }
    }
}

impl<T, E: Deref<Target = End<T>>> Deref for Use<E, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: owned, and nothing is lent.
        unsafe { self.item.as_ref() }
    }
}

impl<T, E: Deref<Target = End<T>>> DerefMut for Use<E, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: owned, and nothing is lent.
        unsafe { self.item.as_mut() }
    }
}

impl<T, E: Deref<Target = End<T>>> Drop for Use<E, T> {
    fn drop(&mut self) {
        // SAFETY: it is that of a `Box`, made into one again once, here.
        let item = unsafe { Box::from_raw(self.item.as_ptr()) };
        let mut state = self.end.lock();
        if state.is_closing && state.is_watched {
            // We may have heard what was for him.
            self.end.wake();
        }
        if !state.is_closing || state.is_watched {
            state.place = Place::Here(item);
            return;
        }
        state.place = Place::Closed;
        drop(state);
        drop(item);
    }
}
