//! A view of a queue from anywhere.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::figures::Figures;
use super::shared::{ElasticShared, wait};
use crate::spool::overflow::Overflow;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// Looks at a queue of bytes from anywhere. Cheap to clone.
#[derive(Clone)]
pub struct Monitor(pub(super) Arc<ElasticShared>);

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Monitor").field(&self.figures()).finish()
    }
}

impl Monitor {
    pub(super) fn new(shared: Arc<ElasticShared>) -> Monitor {
        Monitor(shared)
    }

    /// The figures of this moment.
    pub fn figures(&self) -> Figures {
        self.0.lock().figures(Instant::now())
    }

    /// Rings `wake` whenever the producer has to wait from now on, and now if it does
    /// already.
    pub(crate) fn ring_when_full(&self, wake: &Arc<Wake>) {
        let mut state = self.0.lock();
        if state.held_since().is_some() {
            wake.ring();
        }
        state.producer.full = Arc::downgrade(wake);
    }

    /// The time since which the producer has to wait; none while it does not.
    pub(crate) fn refused_since(&self) -> Option<Instant> {
        self.0.lock().held_since()
    }

    /// The time at which the consumer last looked for something or took it.
    pub(crate) fn last_taken(&self) -> Option<Instant> {
        self.0.lock().consumer.last_taken
    }

    /// The policy of the queue.
    pub(crate) fn policy(&self) -> Overflow {
        self.0.lock().policy
    }

    /// True once all came in that the producer had to say, if nothing was lost.
    pub(crate) fn is_whole(&self) -> bool {
        let state = self.0.lock();
        state.producer.is_whole && state.accounts.lost == 0
    }

    /// Waits until a byte has come in or gone out since `seen`, or the queue has
    /// ended, or the deadline has come; says whether it still goes on.
    ///
    /// # Blocking
    /// Until then. Nothing is polled in between.
    pub fn wait_moved(&self, seen: &Figures, deadline: Deadline) -> bool {
        let mut state = self.0.lock();
        state.waiting_monitors += 1;
        let goes_on = loop {
            if state.has_ended() {
                break false;
            }
            if (state.accounts.came, state.accounts.went) != (seen.bytes_in, seen.bytes_out) {
                break true;
            }
            let now = Instant::now();
            if deadline.reached(now) {
                break true;
            }
            state = wait(&self.0.moved, state, deadline.remaining(now));
        };
        state.waiting_monitors -= 1;
        goes_on
    }

    /// Waits until the queue has ended, or the deadline has come; says whether it
    /// still goes on.
    ///
    /// # Blocking
    /// Until then.
    pub fn wait_ended(&self, deadline: Deadline) -> bool {
        let mut state = self.0.lock();
        loop {
            let now = Instant::now();
            if state.has_ended() || deadline.reached(now) {
                return !state.has_ended();
            }
            state = wait(&self.0.ended, state, deadline.remaining(now));
        }
    }
}
