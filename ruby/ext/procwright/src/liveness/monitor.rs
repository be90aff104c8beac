//! The watching side.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, Symbol, function, method};
use procwright::liveness::{self, Withdrawal};
use procwright::time::Timeout;

use super::claim::Claim;
use super::convert::{guarantee_parts, liveness_error, state_name};
use super::invitation::TokenInvitation;
use crate::arguments::seconds;
use crate::errors::{guarded, panic_error, system_error};
use crate::gvl::without_gvl_briefly;
use crate::interruptible::on_thread;
use crate::process::Handle;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Monitor", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("accept", function!(Monitor::accept, 1))?;
    class.define_singleton_method("of_process", function!(Monitor::of_process, 1))?;
    class.define_singleton_method("of_parent", function!(Monitor::of_parent, 0))?;
    class.define_method("alive?", method!(Monitor::is_alive, 0))?;
    class.define_method("state", method!(Monitor::state, 0))?;
    class.define_method("confirm", method!(Monitor::confirm, 0))?;
    class.define_method("wait_on_the_word", method!(Monitor::wait_on_the_word, 1))?;
    class.define_method("claim", method!(Monitor::claim, 1))?;
    class.define_method("readiness_fd", method!(Monitor::readiness_fd, 0))?;
    class.define_method("process", method!(Monitor::process, 0))?;
    class.define_method("guarantee", method!(Monitor::guarantee, 0))
}

/// Knows whether a peer lives.
#[magnus::wrap(class = "Procwright::Native::Monitor", free_immediately)]
pub(crate) struct Monitor(pub(crate) Arc<liveness::Monitor>);

impl Monitor {
    fn create(
        mut make: impl FnMut() -> Result<liveness::Monitor, liveness::Error>,
    ) -> Result<Monitor, Error> {
        guarded(|| {
            let made = without_gvl_briefly(&mut make)?;
            let made = made.map_err(|panic| panic_error(&*panic))?;
            let made = made.map_err(|error| liveness_error(&error))?;
            Ok(Monitor(Arc::new(made)))
        })
    }

    fn accept(invitation: &TokenInvitation) -> Result<Monitor, Error> {
        let mut clone = Some(invitation.try_clone()?);
        // The closure is called again only if it was not called.
        Monitor::create(|| liveness::Monitor::accept(clone.take().expect("called once")))
    }

    fn of_process(handle: &Handle) -> Result<Monitor, Error> {
        Monitor::create(|| liveness::Monitor::of_process(&handle.process()))
    }

    fn of_parent() -> Result<Monitor, Error> {
        Monitor::create(liveness::Monitor::of_parent)
    }

    fn is_alive(&self) -> bool {
        self.0.alive()
    }

    fn state(&self) -> Symbol {
        state_name(self.0.state())
    }

    fn confirm(&self) -> Result<Symbol, Error> {
        guarded(|| Ok(state_name(self.0.confirm())))
    }

    /// Waits on the word alone until the peer does not live any more; false if the timeout came
    /// first. For a fork, in which the descriptor belongs to the process that was forked.
    fn wait_on_the_word(&self, timeout: Option<f64>) -> Result<bool, Error> {
        guarded(|| {
            let deadline = seconds("timeout", timeout)?.starting(Instant::now());
            self.asleep_on_thread(move |monitor, withdrawal| {
                let left = deadline.remaining(Instant::now());
                let left = left.map_or(Timeout::NEVER, Timeout::from);
                monitor.wait_unless(withdrawal, left).is_some()
            })
        })
    }

    fn claim(&self, timeout: Option<f64>) -> Result<Claim, Error> {
        guarded(|| {
            let timeout = seconds("timeout", timeout)?;
            let claim = self.0.claim(Duration::ZERO);
            let claim = match claim {
                Ok(liveness::Claim::Theirs) if timeout.duration() != Some(Duration::ZERO) => self
                    .asleep_on_thread(
                    move |monitor, withdrawal| monitor.claim_unless(withdrawal, timeout),
                )?,
                claim => claim,
            };
            claim.map(Claim::of).map_err(|error| liveness_error(&error))
        })
    }

    /// Does what sleeps on a word, on a thread of its own. If something is thrown here, that
    /// thread leaves its sleep, and takes nothing that nobody is there to use.
    fn asleep_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&liveness::Monitor, &Withdrawal) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let withdrawal = Arc::new(Withdrawal::new());
        let (monitor, its) = (Arc::clone(&self.0), Arc::clone(&withdrawal));
        let work = move || work(&monitor, &its);
        on_thread(work, || self.0.withdraw(&withdrawal))
    }

    fn readiness_fd(&self) -> Result<RawFd, Error> {
        guarded(|| {
            let fd = self.0.readiness_fd().map(|fd| fd.as_raw_fd());
            fd.map_err(|error| system_error(&error, format!("cannot wait for the peer: {error}")))
        })
    }

    /// The peer's process; none if it cannot be seen from here.
    fn process(&self) -> Option<Handle> {
        self.0.process().map(|process| Handle::of(process.clone()))
    }

    fn guarantee(ruby: &Ruby, this: &Monitor) -> RArray {
        guarantee_parts(ruby, this.0.guarantee())
    }
}
