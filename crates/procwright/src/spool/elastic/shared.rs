//! The part that producer, consumer, spill thread and monitors share: the state
//! behind its lock, and what wakes each of them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::event::Hook;
use super::state::QueueState;
use procwright_os::sync::{Condvar, Mutex, MutexGuard};
use procwright_os::wake::Wake;

pub(super) struct ElasticShared {
    state: Mutex<QueueState>,
    /// Wakes a consumer that has no descriptor to sleep on.
    consumer_wakeup: Condvar,
    /// Wakes the spill thread.
    pub(super) spill_wakeup: Condvar,
    /// Wakes those who wait for new figures.
    pub(super) moved: Condvar,
    /// Wakes those who wait for the end alone.
    pub(super) ended: Condvar,
    /// Rung for a producer that was refused. None once the producer has said all:
    /// a consumer that reads what is left keeps no descriptor of the producer's.
    room: Mutex<Option<Arc<Wake>>>,
    pub(super) hook: Hook,
}

impl fmt::Debug for ElasticShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElasticShared")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl ElasticShared {
    pub(super) fn new(state: QueueState, room: Arc<Wake>, hook: Hook) -> ElasticShared {
        ElasticShared {
            state: Mutex::new(state),
            consumer_wakeup: Condvar::new(),
            spill_wakeup: Condvar::new(),
            moved: Condvar::new(),
            ended: Condvar::new(),
            room: Mutex::new(Some(room)),
            hook,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    /// The wake-up of the producer. A lock of its own, taken with or without that of
    /// the state, never before it.
    pub(super) fn room(&self) -> MutexGuard<'_, Option<Arc<Wake>>> {
        self.room.lock()
    }

    pub(super) fn ring_for_room(&self) {
        if let Some(room) = &*self.room() {
            room.ring();
        }
    }

    /// Rings a producer that was refused, if there is room now. Called after every
    /// step that may have made some.
    pub(super) fn resume_producer(&self, state: &mut QueueState, now: Instant) {
        if state.may_resume_producer(now) {
            self.ring_for_room();
        }
    }

    /// Wakes the consumer if it sleeps. Called after every step that the consumer
    /// can see.
    pub(super) fn notify_consumer(&self, state: &mut QueueState) {
        if std::mem::take(&mut state.consumer.is_waiting) {
            match &state.consumer.sleeps_on {
                Some(wake) => wake.ring(),
                None => self.consumer_wakeup.notify_all(),
            }
        }
        state.update_readable();
    }

    /// Puts the consumer to sleep where it has no descriptor for that.
    pub(super) fn wait_for_producer<'a>(
        &self,
        state: MutexGuard<'a, QueueState>,
        left: Option<Duration>,
    ) -> MutexGuard<'a, QueueState> {
        wait(&self.consumer_wakeup, state, left)
    }

    /// Wakes the monitors that wait for what has just changed.
    pub(super) fn notify_monitors(&self, state: &QueueState) {
        if state.waiting_monitors > 0 {
            self.moved.notify_all();
        }
        if state.has_ended() {
            self.ended.notify_all();
        }
    }

    /// Wakes everything but the two sides, after one of them has gone.
    pub(super) fn notify_all(&self) {
        self.spill_wakeup.notify_all();
        self.moved.notify_all();
        self.ended.notify_all();
    }
}

/// Sleeps until `condvar` is notified or the time is over. It may return sooner.
pub(super) fn wait<'a>(
    condvar: &Condvar,
    state: MutexGuard<'a, QueueState>,
    left: Option<Duration>,
) -> MutexGuard<'a, QueueState> {
    match left {
        None => condvar.wait(state),
        Some(left) => condvar.wait_timeout(state, left).0,
    }
}
