//! How long the program could not write because its pipe was full.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::sys::pipe::FullProbe;
use crate::sys::poll;
use crate::time::Deadline;

/// Measures from the reading side, as an upper bound.
///
/// Only a read makes room. So a pipe that is found full became full at some
/// time since our last read, and the program was blocked for at most that
/// pause; a pipe that is found with room has blocked nobody since then.
#[derive(Debug)]
pub(super) struct Blocked {
    probe: Option<FullProbe>,
    total: Duration,
    /// The last moment at which there was room for certain.
    clear: Instant,
    found_full: bool,
}

/// A pause too short to fill a pipe in: 64 KiB in 4 µs would be 16 GB/s. Such
/// pauses are not looked into, which saves a system call a read in a flood.
const TOO_SHORT: Duration = Duration::from_micros(4);

/// When we slept on an empty pipe, the program may have filled it before the
/// scheduler let us run. That much of the sleep counts, should it be found
/// full; the rest of the sleep was the program's own silence.
const WAKE_UP: Duration = Duration::from_millis(1);

impl Blocked {
    pub(super) fn new(probe: Option<FullProbe>, now: Instant) -> Blocked {
        Blocked {
            probe,
            total: Duration::ZERO,
            clear: now,
            found_full: false,
        }
    }

    pub(super) fn total(&self) -> Duration {
        self.total
    }

    /// After a sleep that began with the pipe empty.
    pub(super) fn slept(&mut self, now: Instant) {
        if let Some(start) = now.checked_sub(WAKE_UP) {
            self.clear = self.clear.max(start);
        }
    }

    /// Right before a read.
    pub(super) fn before_read(&mut self, now: Instant) {
        self.found_full = now.saturating_duration_since(self.clear) >= TOO_SHORT
            && self.probe.as_ref().is_none_or(FullProbe::is_full);
    }

    /// Whether the read that follows may have met a full pipe.
    pub(super) fn is_suspected(&self) -> bool {
        self.found_full
    }

    /// There was nothing to read.
    pub(super) fn found_empty(&mut self, now: Instant) {
        self.clear = now;
    }

    /// Right after a read of so many bytes from a pipe of size `capacity`; or of
    /// more, had the read not been cut short.
    pub(super) fn after_read(
        &mut self,
        (n, cut): (usize, bool),
        fd: &OwnedFd,
        capacity: usize,
        now: Instant,
    ) {
        let n = if cut { capacity / 2 } else { n };
        if self.found_full && was_full(n, fd, capacity) {
            self.total += now.saturating_duration_since(self.clear);
        }
        self.clear = now;
    }
}

/// Whether a pipe that the probe found full, and that then gave `n` bytes, had
/// been full. The probe also says "full" when there is no writer left.
fn was_full(n: usize, fd: &OwnedFd, capacity: usize) -> bool {
    // A write that does not fit into the last page takes a new one, so any two
    // neighbouring pages hold more than one page's bytes: a full pipe holds at
    // least half its size.
    if n < capacity / 2 {
        return false;
    }
    // Close to the brim there is no doubt, and below it the doubt is only about
    // whether anybody could still write.
    if n + 4096 > capacity {
        return true;
    }
    let mut fds = [poll::Fd::new(fd, poll::Flags::empty())];
    let _ = poll::poll(&mut fds, Deadline::at(Instant::now()));
    !fds[0].revents().contains(poll::Flags::HUP)
}
