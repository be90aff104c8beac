//! Figures of a queue, at any time and for anybody.

use std::fmt;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Shared;
use super::state::State;
use crate::spool::Overflow;
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// How a queue of bytes stands. Every byte that came in is out, waiting, dropped
/// or lost: `bytes_in = bytes_out + lag_bytes + dropped_bytes + lost_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Bytes that came in.
    pub bytes_in: u64,
    /// Bytes that the consumer is done with.
    pub bytes_out: u64,
    /// Bytes that wait for the consumer.
    pub lag_bytes: u64,
    /// For how long the oldest of them has been waiting: never too little, and
    /// too much by 10 ms or a hundredth of the greatest lag since it was last
    /// zero.
    pub lag: Duration,
    /// The most that ever waited.
    pub peak_bytes: u64,
    /// The memory that is taken now.
    pub memory_bytes: u64,
    /// The most memory that was ever taken.
    pub memory_peak_bytes: u64,
    /// Bytes that wait on disk.
    pub disk_bytes: u64,
    /// The most that ever waited there.
    pub disk_peak_bytes: u64,
    /// All bytes that went to disk.
    pub spilled_bytes: u64,
    /// Bytes that were dropped because the policy says so.
    pub dropped_bytes: u64,
    /// Bytes that were on disk and could not be read again.
    pub lost_bytes: u64,
    /// For how long the producer was refused.
    pub refused: Duration,
}

/// Looks at a queue of bytes from anywhere. Cheap to clone.
#[derive(Clone)]
pub struct Monitor(pub(super) Arc<Shared>);

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Monitor").field(&self.figures()).finish()
    }
}

impl Monitor {
    pub(super) fn new(shared: Arc<Shared>) -> Monitor {
        Monitor(shared)
    }

    /// The figures of this moment.
    pub fn figures(&self) -> Figures {
        self.0.lock().figures(Instant::now())
    }

    /// Has `wake` rung whenever the producer has to wait from now on, and now if
    /// it does already.
    pub(crate) fn ring_when_full(&self, wake: &Arc<Wake>) {
        let mut state = self.0.lock();
        if state.held_since().is_some() {
            wake.ring();
        }
        state.full = Arc::downgrade(wake);
    }

    /// Since when the producer has to wait; none while it does not.
    pub(crate) fn refused_since(&self) -> Option<Instant> {
        self.0.lock().held_since()
    }

    /// When the consumer last looked for something or took it.
    pub(crate) fn last_taken(&self) -> Option<Instant> {
        self.0.lock().taken
    }

    /// What it is kept under.
    pub(crate) fn policy(&self) -> Overflow {
        self.0.lock().policy
    }

    /// Whether all came in that the producer had to say, and nothing was lost.
    pub(crate) fn is_whole(&self) -> bool {
        let state = self.0.lock();
        state.whole && state.lost == 0
    }

    /// Waits until a byte has come in or gone out since `seen`, or the queue has
    /// ended, or the deadline has come; says whether it still goes on.
    ///
    /// # Blocking
    /// Until then. Nothing is looked at in between.
    pub fn wait_moved(&self, seen: &Figures, deadline: Deadline) -> bool {
        let mut state = self.0.lock();
        state.watchers += 1;
        let goes_on = loop {
            if state.has_ended() {
                break false;
            }
            if (state.came, state.went) != (seen.bytes_in, seen.bytes_out) {
                break true;
            }
            let now = Instant::now();
            if deadline.reached(now) {
                break true;
            }
            state = wait(&self.0.moved, state, deadline.remaining(now));
        };
        state.watchers -= 1;
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

/// Waits for a ring or until the time is over.
pub(super) fn wait<'a>(
    ring: &Condvar,
    state: MutexGuard<'a, State>,
    left: Option<Duration>,
) -> MutexGuard<'a, State> {
    match left {
        None => ring.wait(state).unwrap_or_else(PoisonError::into_inner),
        Some(left) => {
            let waited = ring.wait_timeout(state, left);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
    }
}
