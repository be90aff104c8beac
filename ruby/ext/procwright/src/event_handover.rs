//! Events of a run, from the core's thread for them to a thread of Ruby's.

use std::os::fd::AsFd;
use std::sync::Arc;

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, function, method};
use procwright::time::Deadline;
use procwright::{BoxError, Event};
use procwright_os::fork::ProcessOwned;
use procwright_os::sync::{Condvar, Mutex};
use procwright_os::wake::Wake;

use crate::errors::{guarded, system_error};
use crate::event;
use crate::interruptible::{Interrupts, poll_readable};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("EventHandover", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(EventHandover::new, 0))?;
    class.define_method("take", method!(EventHandover::take, 0))?;
    class.define_method("answer", method!(EventHandover::answer, 1))?;
    class.define_method("close", method!(EventHandover::close, 0))
}

/// Hands over one event at a time: the core's thread waits until Ruby's has answered, so that
/// the run knows whether the hook is at work.
#[magnus::wrap(class = "Procwright::Native::EventHandover", free_immediately)]
pub(crate) struct EventHandover(ProcessOwned<Arc<Shared>>);

struct Shared {
    state: Mutex<State>,
    /// Wakes the core's thread.
    answered: Condvar,
    /// Wakes Ruby's.
    came: Wake,
}

enum State {
    /// No event is under way.
    Idle,
    Waiting(Event),
    /// The hook is at work.
    Taken,
    /// The hook has returned, or raised.
    Answered(bool),
    /// The run is over.
    Closed,
}

impl EventHandover {
    fn new() -> Result<EventHandover, Error> {
        guarded(|| {
            let came = Wake::new();
            let came = came.map_err(|error| system_error(&error, format!("on_event: {error}")))?;
            Ok(EventHandover(ProcessOwned::new(Arc::new(Shared {
                state: Mutex::new(State::Idle),
                answered: Condvar::new(),
                came,
            }))))
        })
    }

    /// Waits for the next event; nil when the run is over, and in a fork.
    fn take(ruby: &Ruby, rb_self: &EventHandover) -> Result<Option<RArray>, Error> {
        guarded(|| {
            let interrupts = Interrupts::watch()?;
            let shared = &rb_self.0;
            while shared.is_ours() {
                shared.came.silence();
                let mut state = shared.state.lock();
                match std::mem::replace(&mut *state, State::Taken) {
                    State::Waiting(event) => {
                        drop(state);
                        return event::parts(ruby, &event).map(Some);
                    }
                    State::Closed => {
                        *state = State::Closed;
                        return Ok(None);
                    }
                    other => *state = other,
                }
                drop(state);
                let watched = [shared.came.as_fd(), interrupts.as_fd()];
                interrupts.without_gvl(|| poll_readable(&watched, Deadline::NEVER))?;
            }
            Ok(None)
        })
    }

    /// Says that the hook has returned, or, with false, raised. A fork, which the hook may have
    /// made, has nobody to say it to.
    fn answer(&self, returned: bool) {
        if self.0.is_ours() {
            self.0.change(State::Answered(returned));
        }
    }

    /// The run is over. Not so for a fork, which a signal handler may have made meanwhile.
    fn close(&self) {
        if self.0.is_ours() {
            self.0.change(State::Closed);
            self.0.came.ring();
        }
    }

    /// The hook for the core, called on its thread.
    pub(crate) fn hook(&self) -> impl FnMut(&Event) -> Result<(), BoxError> + Send + 'static {
        let shared = Arc::clone(&self.0);
        move |event| shared.hand_over(event)
    }
}

impl Shared {
    fn change(&self, to: State) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Closed) {
            *state = to;
        }
        drop(state);
        self.answered.notify_all();
    }

    fn hand_over(&self, event: &Event) -> Result<(), BoxError> {
        self.change(State::Waiting(event.clone()));
        self.came.ring();
        let mut state = self.state.lock();
        loop {
            match *state {
                State::Answered(returned) => {
                    *state = State::Idle;
                    return match returned {
                        true => Ok(()),
                        false => Err("it has raised".into()),
                    };
                }
                State::Closed => return Ok(()),
                State::Idle | State::Waiting(_) | State::Taken => {
                    state = self.answered.wait(state);
                }
            }
        }
    }
}
