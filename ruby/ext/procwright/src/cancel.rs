//! Ends runs from other threads, as `lib/procwright/cancel.rb` completes it.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use magnus::{Class, Error, Module, Object, RModule, Ruby, function, method};

use crate::errors::{guarded, system_error};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Cancel", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(Cancel::new, 0))?;
    class.define_method("cancel", method!(Cancel::cancel, 0))?;
    class.define_method("cancelled?", method!(Cancel::is_cancelled, 0))?;
    class.define_method("readiness_fd", method!(Cancel::readiness_fd, 0))
}

/// Ends runs from another thread.
#[magnus::wrap(class = "Procwright::Native::Cancel", free_immediately)]
pub(crate) struct Cancel(procwright::Cancel);

impl Cancel {
    fn new() -> Result<Cancel, Error> {
        guarded(|| match procwright::Cancel::new() {
            Ok(cancel) => Ok(Cancel(cancel)),
            Err(error) => Err(system_error(&error, error.to_string())),
        })
    }

    fn cancel(&self) -> Result<(), Error> {
        guarded(|| {
            self.0.cancel();
            Ok(())
        })
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn readiness_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }

    pub(crate) fn handle(&self) -> procwright::Cancel {
        self.0.clone()
    }
}
