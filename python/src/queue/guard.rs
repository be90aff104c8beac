//! An end of a queue in use, with a message in place or without.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use procwright::queue::{self, Error};
use pyo3::prelude::*;

use super::endpoint::Endpoint;
use super::errors::{Unavailable, receive_error, unavailable};
use super::lends::LendsMemory;

/// An end that was taken out of its place, to which it goes back.
pub(crate) struct EndpointGuard<E: Deref<Target = Endpoint<T>>, T> {
    endpoint: E,
    /// Owned. A `Box` must not have anything lent of what is in it.
    end: NonNull<T>,
}

/// A receiver that was taken out, and may be kept for longer than its object.
pub(crate) type OwnedReceiver = EndpointGuard<Arc<Endpoint<queue::Receiver>>, queue::Receiver>;

// SAFETY: only the pointer keeps it from being Send by itself, and that is as good as
// the `Box` that it was made of.
unsafe impl<E: Deref<Target = Endpoint<T>> + Send, T: Send> Send for EndpointGuard<E, T> {}

impl<T, E: Deref<Target = Endpoint<T>>> EndpointGuard<E, T> {
    /// # Errors
    /// If another call uses the end, or it is closed.
    pub(super) fn try_acquire(endpoint: E) -> Result<EndpointGuard<E, T>, Unavailable> {
        let end = NonNull::from(Box::leak(endpoint.take_out()?));
        Ok(EndpointGuard { endpoint, end })
    }

    /// # Errors
    /// `Busy`, `EndClosed`, `Forked`.
    pub(super) fn acquire(py: Python<'_>, endpoint: E) -> PyResult<EndpointGuard<E, T>>
    where
        T: LendsMemory,
    {
        EndpointGuard::try_acquire(endpoint).map_err(|why| unavailable(py, why, T::SIDE))
    }

    pub(super) fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// True if the next call has something to raise or to give first.
    pub(crate) fn has_deferred(&self) -> bool {
        self.endpoint.has_deferred()
    }

    /// True if the end was closed meanwhile.
    pub(crate) fn is_closed(&self) -> bool {
        self.endpoint.is_closed()
    }

    /// Lends memory of the end, for as long as the message is in place.
    ///
    /// # Errors
    /// Those of `make`, and the guard again.
    pub(super) fn lend<X>(
        self,
        make: impl for<'a> FnOnce(&'a mut T) -> Result<T::Lent<'a>, X>,
    ) -> Result<InPlace<E, T>, (EndpointGuard<E, T>, X)>
    where
        T: LendsMemory,
    {
        // SAFETY: (1) The end is owned, and outlives what is lent, which `InPlace` drops
        // first. (2) Until then `InPlace` gives no access to the end. (3) `make` works for
        // any lifetime, so it has kept nothing elsewhere.
        let end = unsafe { &mut *self.end.as_ptr() };
        match make(end) {
            Ok(message) => Ok(InPlace {
                message,
                guard: self,
            }),
            Err(error) => Err((self, error)),
        }
    }
}

impl<E: Deref<Target = Endpoint<queue::Receiver>>> EndpointGuard<E, queue::Receiver> {
    /// Defers damage to the next call, from a call that has something to give back: the core
    /// tells of damage only once.
    pub(super) fn defer_damage(&self, py: Python<'_>, error: &Error) {
        if let Error::Damaged { .. } = error {
            self.endpoint.defer_error(py, receive_error(py, error));
        }
    }
}

impl<T, E: Deref<Target = Endpoint<T>>> Deref for EndpointGuard<E, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: owned, and nothing is lent.
        unsafe { self.end.as_ref() }
    }
}

impl<T, E: Deref<Target = Endpoint<T>>> DerefMut for EndpointGuard<E, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: owned, and nothing is lent.
        unsafe { self.end.as_mut() }
    }
}

impl<T, E: Deref<Target = Endpoint<T>>> Drop for EndpointGuard<E, T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a `Box`, which is made of it once, here.
        let end = unsafe { Box::from_raw(self.end.as_ptr()) };
        self.endpoint.put_back(end);
    }
}

/// A message in the memory of a queue, with the end that has lent it.
pub(super) struct InPlace<E: Deref<Target = Endpoint<T>>, T: LendsMemory> {
    // Fields are dropped in this order: the end must outlive what it has lent.
    pub(super) message: T::Lent<'static>,
    pub(super) guard: EndpointGuard<E, T>,
}

/// A message in place that may be kept for longer than the object of its end.
pub(super) type OwnedInPlace<T> = InPlace<Arc<Endpoint<T>>, T>;

impl<E: Deref<Target = Endpoint<queue::Receiver>>> InPlace<E, queue::Receiver> {
    /// Puts the message back: it was not received, and is the next one again.
    pub(super) fn put_back(self) -> EndpointGuard<E, queue::Receiver> {
        self.message.put_back();
        self.guard
    }

    /// Receives the message.
    pub(super) fn receive(self) -> EndpointGuard<E, queue::Receiver> {
        drop(self.message);
        self.guard
    }
}
