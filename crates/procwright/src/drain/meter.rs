//! How long a program could not write, for those who ask while it runs.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::blocked::Blocked;
use crate::sys::fork::Kept;
use crate::sys::pipe::FullProbe;

/// A [`Blocked`] that others look at while a drain measures by it. A lock a read
/// is nothing beside the read.
#[derive(Clone, Debug)]
pub(super) struct Meter(Arc<Mutex<Inside>>);

#[derive(Debug)]
struct Inside {
    blocked: Blocked,
    /// Nobody reads on, for there is no room to read into.
    held: bool,
}

impl Meter {
    pub(super) fn new(probe: Option<Arc<FullProbe>>, now: Instant) -> Meter {
        Meter(Arc::new(Mutex::new(Inside {
            blocked: Blocked::new(probe, now),
            held: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn total(&self) -> Duration {
        self.lock().blocked.total()
    }

    pub(super) fn slept(&self, now: Instant) {
        self.lock().blocked.slept(now);
    }

    /// Whether the read that follows may meet a full pipe.
    pub(super) fn before_read(&self, now: Instant) -> bool {
        let mut inside = self.lock();
        inside.held = false;
        inside.blocked.before_read(now);
        inside.blocked.is_suspected()
    }

    pub(super) fn found_empty(&self, now: Instant) {
        self.lock().blocked.found_empty(now);
    }

    pub(super) fn after_read(&self, n: usize, fd: BorrowedFd<'_>, capacity: usize, now: Instant) {
        self.lock().blocked.after_read(n, fd, capacity, now);
    }

    /// Nobody reads until there is room again.
    pub(super) fn hold(&self, now: Instant) {
        let mut inside = self.lock();
        inside.held = true;
        inside.blocked.hold(now);
    }

    /// Nobody will read any more.
    pub(super) fn settle(&self, fd: BorrowedFd<'_>, now: Instant) {
        let mut inside = self.lock();
        if std::mem::take(&mut inside.held) {
            inside.blocked.settle(fd, now);
        }
    }

    /// Nobody will read any more.
    pub(super) fn over(&self) {
        let mut inside = self.lock();
        inside.held = false;
        inside.blocked.over();
    }

    pub(super) fn gauge(&self, fd: Weak<Kept>) -> Gauge {
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
    /// Looked at while the drain has it; not kept open.
    fd: Weak<Kept>,
}

impl Gauge {
    /// For how long the program could not write, up to this moment while nobody
    /// reads on.
    pub(crate) fn blocked(&self) -> Duration {
        let fd = self.fd.upgrade();
        let fd = fd.as_ref().and_then(|fd| fd.get().ok());
        let inside = self.meter.lock();
        let running = match (fd, inside.held) {
            (Some(fd), true) => inside.blocked.running(fd, Instant::now()),
            _ => Duration::ZERO,
        };
        inside.blocked.total() + running
    }
}
