//! Finds out that a child cannot go on because its output is not read.

use std::ffi::OsString;
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::output_monitor::OutputMonitor;
use super::stalled::{Stalled, StalledStream};
use crate::quote::quote;
use crate::std_stream::{PerStream, StdStream};
use procwright_os::fork;
use procwright_os::sync::Mutex;
use procwright_os::time::{Deadline, Timeout};
use procwright_os::wake::Wake;

/// Tells all waits for one child that it has stalled. Keeps no stream open.
#[derive(Debug)]
pub(crate) struct StallWatch {
    argv: Vec<OsString>,
    after: Timeout,
    monitors: PerStream<Option<OutputMonitor>>,
    /// The wake-up that a full queue rings. The waits hold it, and it goes with the last
    /// of them: a child that is over keeps no descriptor.
    full: Mutex<Weak<Wake>>,
    /// The checks of a wait that was interrupted last.
    interrupted: Mutex<Option<Interrupted>>,
    generation: u32,
}

/// What the checks of a wait had seen when it was interrupted.
#[derive(Debug)]
struct Interrupted {
    thread: ThreadId,
    at: Instant,
    writing: bool,
    began: Instant,
    full: PerStream<Option<Instant>>,
}

/// How soon after an interrupt the same thread takes the same wait up again. Handlers of
/// signals run in between; who comes later was elsewhere, and has not waited.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(1);

/// The shortest pause between two checks, however soon a stall is to be told of: there
/// are checks by the clock, and without a pause they would never end.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl StallWatch {
    pub(crate) fn new(
        argv: Vec<OsString>,
        after: Timeout,
        monitors: PerStream<Option<OutputMonitor>>,
    ) -> StallWatch {
        StallWatch {
            argv,
            after,
            monitors,
            full: Mutex::default(),
            interrupted: Mutex::default(),
            generation: fork::generation(),
        }
    }

    /// The watch of a stream that is no child's: it tells of nothing.
    pub(super) fn none() -> Arc<StallWatch> {
        let never = Timeout::NEVER;
        Arc::new(StallWatch::new(Vec::new(), never, PerStream::default()))
    }

    /// The command as a shell takes it.
    pub(crate) fn command(&self) -> String {
        quote(&self.argv)
    }

    pub(crate) fn monitors(&self) -> &PerStream<Option<OutputMonitor>> {
        &self.monitors
    }

    fn each(&self) -> impl Iterator<Item = (StdStream, &OutputMonitor)> {
        let monitors = self.monitors.iter();
        monitors.filter_map(|(stream, monitor)| Some((stream, monitor.as_ref()?)))
    }

    /// The time after which a full output is a stall; none where a stall is not to be
    /// told of, or cannot be seen: in a fork a lock of a queue may be held for ever.
    fn after(&self) -> Option<Duration> {
        let watches = self.each().next().is_some() && self.generation == fork::generation();
        let after = self.after.duration().filter(|_| watches);
        after.map(|after| after.max(SHORTEST_PAUSE))
    }

    /// The wake-up that a queue rings when it becomes full, one for all waits; none where
    /// nothing would ring it, or where no descriptor is left.
    fn ring(&self) -> Option<Arc<Wake>> {
        if self.each().all(|(_, monitor)| monitor.is_bare()) {
            return None;
        }
        let mut full = self.full.lock();
        if let Some(wake) = full.upgrade() {
            return Some(wake);
        }
        let wake = Arc::new(Wake::new().ok()?);
        *full = Arc::downgrade(&wake);
        for (_, monitor) in self.each() {
            monitor.ring_when_full(&wake);
        }
        Some(wake)
    }

    /// What an interrupted wait of this thread has seen, if it is taken up again now.
    fn taken_up(&self, writing: bool, now: Instant) -> Option<Interrupted> {
        // In a fork the lock may be held for ever.
        self.after()?;
        let mut place = self.interrupted.lock();
        let here = std::thread::current().id();
        let before = place.take_if(|before| before.thread == here)?;
        let is_soon = now.saturating_duration_since(before.at) <= TAKEN_UP_WITHIN;
        (is_soon && before.writing == writing).then_some(before)
    }

    /// True if an output is full, as far as it is kept for a reader.
    pub(crate) fn any_held(&self) -> bool {
        self.each()
            .any(|(_, monitor)| monitor.held_since().is_some())
    }
}

/// The checks of one wait, and what they have seen of the outputs.
#[derive(Debug)]
pub(crate) struct StallCheck {
    watch: Arc<StallWatch>,
    after: Option<Duration>,
    began: Instant,
    writing: bool,
    ring: Option<Arc<Wake>>,
    /// The times since which each output is known to be full.
    full: PerStream<Option<Instant>>,
}

/// The time of the next check.
#[derive(Debug)]
pub(crate) struct NextCheck {
    pub(crate) at: Deadline,
    /// A descriptor that is readable if the check is due before.
    pub(crate) ring: Option<Arc<Wake>>,
}

impl StallCheck {
    /// Checks for a wait for the child's end.
    pub(crate) fn waiting(watch: &Arc<StallWatch>, now: Instant) -> StallCheck {
        StallCheck::new(watch, false, now)
    }

    /// Checks for a write to its stdin.
    pub(crate) fn writing(watch: &Arc<StallWatch>, now: Instant) -> StallCheck {
        StallCheck::new(watch, true, now)
    }

    fn new(watch: &Arc<StallWatch>, writing: bool, now: Instant) -> StallCheck {
        let (began, full) = match watch.taken_up(writing, now) {
            Some(before) => (before.began, before.full),
            None => (now, PerStream::default()),
        };
        StallCheck {
            after: watch.after(),
            watch: Arc::clone(watch),
            began,
            writing,
            ring: None,
            full,
        }
    }

    /// Keeps what was seen for the time when the wait is taken up again: otherwise signals
    /// that come more often than `stall_after` would hide every stall.
    pub(crate) fn interrupted(self, now: Instant) {
        if self.after.is_some() {
            *self.watch.interrupted.lock() = Some(Interrupted {
                thread: std::thread::current().id(),
                at: now,
                writing: self.writing,
                began: self.began,
                full: self.full,
            });
        }
    }

    /// The time of the first check, if the call has to wait at all.
    pub(crate) fn first_check(&self) -> Deadline {
        Timeout::from(self.after).starting(self.began)
    }

    /// Finds out whether there is a stall, and says when to ask again.
    ///
    /// Nothing is checked by the clock while no queue is full: a queue that becomes full
    /// rings. Nothing rings when a bare pipe becomes full, or a pipe behind a full
    /// queue; there a check each `stall_after` is all that is left. It costs two system
    /// calls.
    ///
    /// # Errors
    /// The stall.
    pub(crate) fn check(&mut self, now: Instant) -> Result<NextCheck, Stalled> {
        let never = NextCheck {
            at: Deadline::NEVER,
            ring: None,
        };
        let Some(after) = self.after else {
            return Ok(never);
        };
        // A write checks by the clock: it is not idle while it waits, and the ring would be
        // one more descriptor beside those that it polls.
        if !self.writing && self.ring.is_none() {
            self.ring = self.watch.ring();
        }
        let ring = self.ring.clone();
        let mut again = Deadline::NEVER;
        let check_after = |from: Instant| Timeout::after(after).starting(from);
        let mut stalled = Vec::new();
        for (stream, monitor) in self.watch.each() {
            let held = monitor.held_since();
            if !monitor.can_tell() || (held.is_none() && !monitor.is_bare()) {
                self.full[stream] = None;
                if self.writing || (ring.is_none() && monitor.can_tell()) {
                    again = again.min(check_after(now));
                }
                continue;
            }
            if !monitor.pipe_is_full() {
                self.full[stream] = None;
                again = again.min(check_after(now));
                continue;
            }
            // A bare pipe that is full now may just have become so, unless a write has been
            // waiting since `began`: a child that could go on would have read.
            let known = match (held, self.writing) {
                (Some(held), _) => held.max(self.began),
                (None, true) => self.began,
                (None, false) => now,
            };
            let since = *self.full[stream].get_or_insert(known);
            let since = since.max(monitor.last_read().unwrap_or(since));
            match now.saturating_duration_since(since) >= after {
                true => stalled.push((stream, now.saturating_duration_since(since))),
                false => again = again.min(check_after(since)),
            }
        }
        if let Some(after) = stalled.iter().map(|(_, after)| *after).min() {
            return Err(self.stalled(stalled.iter().map(|(stream, _)| *stream), after));
        }
        let Some(wake) = ring else {
            return Ok(NextCheck {
                at: again,
                ring: None,
            });
        };
        if self.watch.any_held() {
            // The clock of a full queue runs, and the ring would stay readable.
            return Ok(NextCheck {
                at: again.min(check_after(now)),
                ring: None,
            });
        }
        // A ring must not be lost between the check and the sleep:
        //
        // 1. The checks above find no queue full.
        // 2. A queue becomes full, and rings.
        // 3. `silence` takes the ring away, which other waits share.
        // 4. So the queues are asked once more, and the ring is put back.
        wake.silence();
        if self.watch.any_held() {
            wake.ring();
        }
        Ok(NextCheck {
            at: again,
            ring: Some(wake),
        })
    }

    fn stalled(&self, streams: impl Iterator<Item = StdStream>, after: Duration) -> Stalled {
        let stream = |stream: StdStream| {
            let monitor = self.watch.monitors[stream].as_ref()?;
            let figures = monitor.figures().unwrap_or_default();
            Some(StalledStream {
                name: stream.name(),
                memory_bytes: figures.lag_bytes - figures.disk_bytes,
                disk_bytes: figures.disk_bytes,
                overflow: monitor.overflow(),
            })
        };
        Stalled {
            command: self.watch.command(),
            streams: streams.filter_map(stream).collect(),
            after,
            writing: self.writing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::OutputPath;

    #[test]
    fn a_stall_told_at_once_is_not_checked_without_a_pause() {
        let monitor = OutputMonitor::new(OutputPath::Pipe(Arc::default()), None);
        let watch = Arc::new(StallWatch::new(
            Vec::new(),
            Timeout::after(Duration::ZERO),
            PerStream::new(Some(monitor), None),
        ));
        let now = Instant::now();
        let mut check = StallCheck::writing(&watch, now);
        assert!(!check.first_check().reached(now));
        assert!(!check.check(now).unwrap().at.reached(now));
    }
}
