//! Pipes between Ruby's threads and the core's.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use magnus::{Class, Error, Module, Object, RModule, Ruby, function, method};
use procwright_os::fork::CloseOnFork;

use crate::errors::{guarded, system_error};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("PipeEnd", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("pair", function!(PipeEnd::pair, 0))?;
    class.define_method("fileno", method!(PipeEnd::fileno, 0))?;
    class.define_method("close", method!(PipeEnd::close, 0))
}

/// An end of a pipe that no fork keeps, unlike that of `IO.pipe`: whoever is at the other end
/// would see no end of it for as long as the fork lives.
///
/// The cell is used with Ruby's lock, and never while that is let go of.
#[magnus::wrap(class = "Procwright::Native::PipeEnd", free_immediately)]
pub(crate) struct PipeEnd(RefCell<Option<CloseOnFork>>);

impl PipeEnd {
    /// The reading and the writing end. Neither blocks, as those of `IO.pipe`: Ruby waits.
    fn pair() -> Result<(PipeEnd, PipeEnd), Error> {
        guarded(|| {
            let made = io::pipe().and_then(|(read, write)| {
                rustix::io::ioctl_fionbio(&read, true)?;
                rustix::io::ioctl_fionbio(&write, true)?;
                Ok((PipeEnd::new(read.into()), PipeEnd::new(write.into())))
            });
            made.map_err(|error| system_error(&error, format!("cannot make a pipe: {error}")))
        })
    }

    fn new(fd: OwnedFd) -> PipeEnd {
        PipeEnd(RefCell::new(Some(CloseOnFork::new(fd))))
    }

    fn fileno(&self) -> Result<RawFd, Error> {
        guarded(|| {
            let open = self.0.borrow();
            let fd = open
                .as_ref()
                .map_or_else(|| Err(io::Error::other("closed")), CloseOnFork::get);
            fd.map(|fd| fd.as_raw_fd())
                .map_err(|error| system_error(&error, error.to_string()))
        })
    }

    /// Closes it, if it is open.
    fn close(&self) -> Result<(), Error> {
        guarded(|| {
            drop(self.0.take());
            Ok(())
        })
    }
}
