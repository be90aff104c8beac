//! The time for which a program could not write, read while it runs.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::blocked_time::BlockedTime;
use procwright_os::fork::CloseOnFork;
use procwright_os::pipe::FullProbe;
use procwright_os::sync::{Mutex, MutexGuard};

/// A [`BlockedTime`] that other threads look at while a drain measures by it. A lock for
/// each read is nothing beside the read. None for a terminal: the end where it is read
/// does not tell whether it is full.
#[derive(Clone, Debug)]
pub(super) struct Meter(Option<Arc<Mutex<MeterState>>>);

#[derive(Debug)]
struct MeterState {
    blocked: BlockedTime,
    /// No read comes, for there is no room to read into.
    held: bool,
}

impl Meter {
    pub(super) fn new(probe: Option<Arc<FullProbe>>, now: Instant) -> Meter {
        Meter(Some(Arc::new(Mutex::new(MeterState {
            blocked: BlockedTime::new(probe, now),
            held: false,
        }))))
    }

    /// A meter of a stream of which the time cannot be known.
    pub(super) const fn unknown() -> Meter {
        Meter(None)
    }

    fn lock(&self) -> Option<MutexGuard<'_, MeterState>> {
        let state = self.0.as_ref()?;
        Some(state.lock())
    }

    fn note(&self, note: impl FnOnce(&mut MeterState)) {
        if let Some(mut state) = self.lock() {
            note(&mut state);
        }
    }

    pub(super) fn total(&self) -> Option<Duration> {
        self.lock().map(|state| state.blocked.total())
    }

    pub(super) fn slept(&self, now: Instant) {
        self.note(|state| state.blocked.slept(now));
    }

    /// Looks at the pipe. True if the read that follows may meet a full one.
    pub(super) fn before_read(&self, now: Instant) -> bool {
        let Some(mut state) = self.lock() else {
            return false;
        };
        state.held = false;
        state.blocked.before_read(now);
        state.blocked.is_suspected()
    }

    pub(super) fn found_empty(&self, then: Instant) {
        self.note(|state| state.blocked.found_empty(then));
    }

    pub(super) fn after_read(&self, n: usize, fd: BorrowedFd<'_>, capacity: usize, now: Instant) {
        self.note(|state| state.blocked.after_read(n, fd, capacity, now));
    }

    /// Notes that no read comes until there is room again.
    pub(super) fn hold(&self, now: Instant) {
        self.note(|state| {
            state.held = true;
            state.blocked.hold(now);
        });
    }

    /// Counts the time since the latest read, if no read came for want of room.
    pub(super) fn count_rest(&self, fd: BorrowedFd<'_>, now: Instant) {
        self.note(|state| {
            if std::mem::take(&mut state.held) {
                state.blocked.count_rest(fd, now);
            }
        });
    }

    /// Ends the measurement: no other read comes.
    pub(super) fn close_probe(&self) {
        self.note(|state| {
            state.held = false;
            state.blocked.close_probe();
        });
    }

    pub(super) fn gauge(&self, fd: Weak<CloseOnFork>) -> Gauge {
        Gauge {
            meter: self.clone(),
            fd,
        }
    }
}

/// Reads a [`Meter`] from anywhere.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    meter: Meter,
    /// The pipe, while the drain has it. Not kept open.
    fd: Weak<CloseOnFork>,
}

impl Gauge {
    /// Tells whether the pipe is full, for as long as it is read; none where that cannot be had.
    pub(crate) fn probe(&self) -> Option<Arc<FullProbe>> {
        self.meter.lock()?.blocked.probe()
    }

    /// The time for which the program could not write, up to this moment while no read
    /// comes; none where that cannot be known.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        let fd = self.fd.upgrade();
        let fd = fd.as_ref().and_then(|fd| fd.get().ok());
        let state = self.meter.lock()?;
        let running = match (fd, state.held) {
            (Some(fd), true) => state.blocked.running(fd, Instant::now()),
            _ => Duration::ZERO,
        };
        Some(state.blocked.total() + running)
    }
}
