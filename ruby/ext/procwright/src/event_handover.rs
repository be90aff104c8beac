//! Events of a run, from the core's thread for them to a thread of Ruby's.

use std::os::fd::RawFd;
use std::sync::Arc;

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, function, method};
use procwright::{BoxError, Event, duplicate_fd};
use procwright_os::fork::ProcessOwned;

use crate::errors::{guarded, system_error};
use crate::event;
use crate::exchange::Exchange;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("EventHandover", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(EventHandover::new, 0))?;
    class.define_method("take", method!(EventHandover::take, 0))?;
    class.define_method("answer", method!(EventHandover::answer, 1))?;
    class.define_method("close", method!(EventHandover::close, 0))?;
    class.define_method("close_with", method!(EventHandover::close_with, 1))
}

/// Hands over one event at a time: the core's thread waits until Ruby's has answered, so that
/// the run knows whether the hook is at work.
#[magnus::wrap(class = "Procwright::Native::EventHandover", free_immediately)]
pub(crate) struct EventHandover(ProcessOwned<Arc<Exchange<Event, bool>>>);

impl EventHandover {
    fn new() -> Result<EventHandover, Error> {
        guarded(|| {
            let made = Exchange::new();
            let made = made.map_err(|error| system_error(&error, format!("on_event: {error}")))?;
            Ok(EventHandover(ProcessOwned::new(Arc::new(made))))
        })
    }

    /// Waits for the next event; nil when the run is over, and in a fork.
    fn take(ruby: &Ruby, rb_self: &EventHandover) -> Result<Option<RArray>, Error> {
        guarded(|| {
            let event = rb_self.0.take(|| rb_self.0.is_ours())?;
            event.map(|event| event::parts(ruby, &event)).transpose()
        })
    }

    /// Says that the hook has returned, or, with false, raised. A fork, which the hook may have
    /// made, has nobody to say it to.
    fn answer(&self, returned: bool) {
        if self.0.is_ours() {
            self.0.answer(returned);
        }
    }

    /// The run is over. Not so for a fork, which a signal handler may have made meanwhile.
    fn close(&self) {
        if self.0.is_ours() {
            self.0.close();
        }
    }

    /// It is over once this descriptor, of which a copy is made, is readable.
    fn close_with(&self, number: RawFd) -> Result<(), Error> {
        guarded(|| {
            let copy = duplicate_fd(number);
            let copy = copy.map_err(|error| system_error(&error, format!("on_event: {error}")))?;
            self.0.close_with(copy);
            Ok(())
        })
    }

    /// A listener for the core, called on its thread. False if nobody takes events any more.
    pub(crate) fn listener(&self) -> impl FnMut(&Event) -> bool + Send + 'static {
        let exchange = Arc::clone(&self.0);
        move |event| exchange.ask(event.clone()).is_some()
    }

    /// The hook for the core, called on its thread.
    pub(crate) fn hook(&self) -> impl FnMut(&Event) -> Result<(), BoxError> + Send + 'static {
        let exchange = Arc::clone(&self.0);
        move |event| match exchange.ask(event.clone()) {
            Some(true) | None => Ok(()),
            Some(false) => Err("it has raised".into()),
        }
    }
}
