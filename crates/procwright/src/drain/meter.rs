//! How long a program could not write, for those who ask while it runs.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::blocked::Blocked;
use crate::sys::fork::Kept;
use crate::sys::pipe::FullProbe;

/// A [`Blocked`] that others look at while a drain measures by it. A lock a read
/// is nothing beside the read. None for a terminal: whether that is full nobody
/// can tell from the end where it is read.
#[derive(Clone, Debug)]
pub(super) struct Meter(Option<Arc<Mutex<Inside>>>);

#[derive(Debug)]
struct Inside {
    blocked: Blocked,
    /// Nobody reads on, for there is no room to read into.
    held: bool,
}

impl Meter {
    pub(super) fn new(probe: Option<Arc<FullProbe>>, now: Instant) -> Meter {
        Meter(Some(Arc::new(Mutex::new(Inside {
            blocked: Blocked::new(probe, now),
            held: false,
        }))))
    }

    /// Of a stream of which it cannot be known.
    pub(super) const fn unknown() -> Meter {
        Meter(None)
    }

    fn lock(&self) -> Option<MutexGuard<'_, Inside>> {
        let inside = self.0.as_ref()?;
        Some(inside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, note: impl FnOnce(&mut Inside)) {
        if let Some(mut inside) = self.lock() {
            note(&mut inside);
        }
    }

    pub(super) fn total(&self) -> Option<Duration> {
        self.lock().map(|inside| inside.blocked.total())
    }

    pub(super) fn slept(&self, now: Instant) {
        self.note(|inside| inside.blocked.slept(now));
    }

    /// Whether the read that follows may meet a full pipe.
    pub(super) fn before_read(&self, now: Instant) -> bool {
        let Some(mut inside) = self.lock() else {
            return false;
        };
        inside.held = false;
        inside.blocked.before_read(now);
        inside.blocked.is_suspected()
    }

    pub(super) fn found_empty(&self, now: Instant) {
        self.note(|inside| inside.blocked.found_empty(now));
    }

    pub(super) fn after_read(&self, n: usize, fd: BorrowedFd<'_>, capacity: usize, now: Instant) {
        self.note(|inside| inside.blocked.after_read(n, fd, capacity, now));
    }

    /// Nobody reads until there is room again.
    pub(super) fn hold(&self, now: Instant) {
        self.note(|inside| {
            inside.held = true;
            inside.blocked.hold(now);
        });
    }

    /// Nobody will read any more.
    pub(super) fn settle(&self, fd: BorrowedFd<'_>, now: Instant) {
        self.note(|inside| {
            if std::mem::take(&mut inside.held) {
                inside.blocked.settle(fd, now);
            }
        });
    }

    /// Nobody will read any more.
    pub(super) fn over(&self) {
        self.note(|inside| {
            inside.held = false;
            inside.blocked.over();
        });
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
    /// reads on; none where that cannot be known.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        let fd = self.fd.upgrade();
        let fd = fd.as_ref().and_then(|fd| fd.get().ok());
        let inside = self.meter.lock()?;
        let running = match (fd, inside.held) {
            (Some(fd), true) => inside.blocked.running(fd, Instant::now()),
            _ => Duration::ZERO,
        };
        Some(inside.blocked.total() + running)
    }
}
