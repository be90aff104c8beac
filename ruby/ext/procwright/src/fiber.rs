//! Fibers: where a scheduler runs several of them on one thread, who waits leaves the
//! thread to the others.
#![allow(unsafe_code)]

use std::os::fd::RawFd;

use magnus::rb_sys::FromRawValue;
use magnus::value::ReprValue;
use magnus::{Error, Module, RModule, Value};

use crate::errors::ruby;

/// Whether the running fiber has a scheduler, and is one that must not block its thread.
pub(crate) fn is_scheduled() -> bool {
    // SAFETY: we have Ruby's lock; it only looks.
    let scheduler = unsafe { Value::from_raw(rb_sys::rb_fiber_scheduler_current()) };
    !scheduler.is_nil()
}

/// Has other fibers go on until this descriptor is readable. Whoever calls holds it open,
/// and no lock of ours.
///
/// # Errors
/// What was raised in this fiber meanwhile.
pub(crate) fn await_readable(fd: RawFd) -> Result<(), Error> {
    let module: RModule = ruby().class_object().const_get("Procwright")?;
    let fibers: RModule = module.const_get("Fibers")?;
    fibers
        .funcall::<_, _, Value>("readable?", (fd, ()))
        .map(drop)
}
