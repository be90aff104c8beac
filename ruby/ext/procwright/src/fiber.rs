//! Fiber schedulers, which run several fibers on one thread: a fiber that waits leaves the
//! thread to the others.
#![allow(unsafe_code)]

use std::os::fd::RawFd;

use magnus::rb_sys::FromRawValue;
use magnus::value::ReprValue;
use magnus::{Error, Module, RModule, Value};

use crate::gvl::ruby;

/// True if the running fiber has a scheduler, and must not block its thread.
pub(crate) fn is_scheduled() -> bool {
    // SAFETY: we have Ruby's lock; it only looks.
    let scheduler = unsafe { Value::from_raw(rb_sys::rb_fiber_scheduler_current()) };
    !scheduler.is_nil()
}

/// Waits in the scheduler until this descriptor is readable. The caller keeps it open, and
/// holds no lock of ours.
///
/// # Errors
/// The exception that was raised in this fiber meanwhile.
pub(crate) fn await_readable(fd: RawFd) -> Result<(), Error> {
    let module: RModule = ruby().class_object().const_get("Procwright")?;
    let fibers: RModule = module.const_get("Fibers")?;
    fibers
        .funcall::<_, _, Value>("readable?", (fd, ()))
        .map(drop)
}
