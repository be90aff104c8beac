//! A child that cannot go on because nobody reads what it writes.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::outlet::Outlet;
use crate::spec::quote;
use crate::spool::Overflow;
use crate::sys::fork;
use crate::sys::wake::Wake;
use crate::time::{Deadline, Seconds, Timeout};

/// A child cannot go on: its output is full, to the brim of what may be kept
/// and of the pipe, and nobody has begun to read it for a while.
///
/// Whoever waits for such a child might wait for ever. Nothing is lost or ended:
/// the call may be made again. A write to its stdin has it wrapped in an
/// [`io::Error`] of kind `Other`; [`Stalled::of`] takes it out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stalled {
    /// The command as a shell takes it.
    pub command: String,
    /// The outputs that are full.
    pub streams: Vec<StalledStream>,
    /// For how long nobody has begun to read them while the call waited.
    pub after: Duration,
    /// Whether it was a write to stdin that waited, and not for the end.
    pub writing: bool,
}

/// An output that is full.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StalledStream {
    /// `stdout` or `stderr`.
    pub name: &'static str,
    /// The bytes that are kept in memory for whoever will read them.
    pub memory_bytes: u64,
    /// So too, on disk.
    pub disk_bytes: u64,
    /// What may be kept; none for the bare pipe.
    pub overflow: Option<Overflow>,
}

impl Stalled {
    /// What this error says of a stall, if it does.
    pub fn of(error: &io::Error) -> Option<&Stalled> {
        error.get_ref()?.downcast_ref()
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.streams.iter().map(|stream| stream.name).collect();
        names.join(" and ")
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        let (be, it) = match self.streams.len() {
            1 => ("is", "it"),
            _ => ("are", "them"),
        };
        let why = match self.writing {
            true => "reads no input and ",
            false => "",
        };
        write!(
            f,
            "{} {why}cannot go on: its {names} {be} full, and nobody has read {it} for {}",
            self.command,
            Seconds(self.after)
        )?;
        for stream in &self.streams {
            write!(f, "\n  {stream}")?;
        }
        write!(
            f,
            "\n  hint: read {names}, in another thread if this one waits; or give the spawn a \
             larger budget or an overflow that drops; or send {it} to /dev/null. \
             The call may be made again"
        )
    }
}

impl fmt::Display for StalledStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, memory) = (self.name, self.memory_bytes);
        match self.overflow {
            None => write!(f, "{name}: only the pipe, which is full"),
            Some(overflow) => write!(
                f,
                "{name}: the pipe is full, and {memory} bytes are kept in memory and {} on disk, \
                 which is all that {overflow:?} gives room for now",
                self.disk_bytes
            ),
        }
    }
}

impl std::error::Error for Stalled {}

/// Tells of stalls of one child to all who wait for it. Keeps no stream open.
#[derive(Debug)]
pub(crate) struct StallWatch {
    argv: Vec<OsString>,
    after: Timeout,
    outlets: [Option<Outlet>; 2],
    /// Rung by a queue that is full. Of those who wait, and gone with them: a child
    /// that is over keeps no descriptor.
    full: Mutex<Weak<Wake>>,
    generation: u32,
}

/// Sooner than this nobody looks again, however soon a stall is to be told of: there
/// are looks by the clock, and without a pause they would never end.
const LEAST: Duration = Duration::from_millis(10);

const NAMES: [&str; 2] = ["stdout", "stderr"];

impl StallWatch {
    pub(crate) fn new(
        argv: Vec<OsString>,
        after: Timeout,
        outlets: [Option<Outlet>; 2],
    ) -> StallWatch {
        StallWatch {
            argv,
            after,
            outlets,
            full: Mutex::default(),
            generation: fork::generation(),
        }
    }

    /// Of a stream that is no child's.
    #[cfg(all(test, not(procwright_loom)))]
    pub(super) fn nobody() -> Arc<StallWatch> {
        let never = Timeout::NEVER;
        Arc::new(StallWatch::new(Vec::new(), never, [None, None]))
    }

    pub(crate) fn outlets(&self) -> &[Option<Outlet>; 2] {
        &self.outlets
    }

    fn each(&self) -> impl Iterator<Item = (usize, &Outlet)> {
        let outlets = self.outlets.iter().enumerate();
        outlets.filter_map(|(i, outlet)| Some((i, outlet.as_ref()?)))
    }

    /// None where a stall is nothing to be told of, or cannot be seen: in a fork
    /// a lock of a queue may be held for ever.
    fn after(&self) -> Option<Duration> {
        let watches = self.each().next().is_some() && self.generation == fork::generation();
        let after = self.after.duration().filter(|_| watches);
        after.map(|after| after.max(LEAST))
    }

    /// What is rung when a queue becomes full, for all who wait; none where nothing
    /// would ring it, or where no descriptor is left.
    fn ring(&self) -> Option<Arc<Wake>> {
        if self.each().all(|(_, outlet)| outlet.is_bare()) {
            return None;
        }
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wake) = full.upgrade() {
            return Some(wake);
        }
        let wake = Arc::new(Wake::new().ok()?);
        *full = Arc::downgrade(&wake);
        for (_, outlet) in self.each() {
            outlet.ring_when_full(&wake);
        }
        Some(wake)
    }

    fn any_held(&self) -> bool {
        self.each().any(|(_, outlet)| outlet.held_since().is_some())
    }
}

/// One wait, and what it has seen of the outputs.
#[derive(Debug)]
pub(crate) struct Patient<'a> {
    watch: &'a StallWatch,
    after: Option<Duration>,
    began: Instant,
    writing: bool,
    ring: Option<Arc<Wake>>,
    /// Since when each is known to be full.
    full: [Option<Instant>; 2],
}

/// When to look again.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) at: Deadline,
    /// Or once this is readable.
    pub(crate) ring: Option<Arc<Wake>>,
}

impl<'a> Patient<'a> {
    /// Of a wait for the end.
    pub(crate) fn waiting(watch: &'a StallWatch, now: Instant) -> Patient<'a> {
        Patient {
            watch,
            after: watch.after(),
            began: now,
            writing: false,
            ring: None,
            full: [None; 2],
        }
    }

    /// Of a write.
    pub(crate) fn writing(watch: &'a StallWatch, now: Instant) -> Patient<'a> {
        Patient {
            writing: true,
            ..Patient::waiting(watch, now)
        }
    }

    /// When to look for the first time, if the call has to wait at all.
    pub(crate) fn first(&self) -> Deadline {
        Timeout::from(self.after).starting(self.began)
    }

    /// Looks whether there is a stall, and says when to look again.
    ///
    /// While no queue is full nothing is looked at by the clock: it rings. A bare
    /// pipe has nobody who could ring when it becomes full, and neither has a
    /// pipe behind a queue that is full; there a look each `stall_after` is all
    /// that is left. It costs two system calls.
    ///
    /// # Errors
    /// The stall.
    pub(crate) fn look(&mut self, now: Instant) -> Result<Again, Stalled> {
        let never = Again {
            at: Deadline::NEVER,
            ring: None,
        };
        let Some(after) = self.after else {
            return Ok(never);
        };
        // For a write the ring would be one more descriptor beside those that it
        // polls; it has begun to wait, so it is not idle, and looks by the clock.
        if !self.writing && self.ring.is_none() {
            self.ring = self.watch.ring();
        }
        let ring = self.ring.clone();
        let mut again = Deadline::NEVER;
        let look_in = |from: Instant| Timeout::after(after).starting(from);
        let mut stalled = Vec::new();
        for (i, outlet) in self.watch.each() {
            let held = outlet.held_since();
            if !outlet.can_tell() || (held.is_none() && !outlet.is_bare()) {
                self.full[i] = None;
                if self.writing || (ring.is_none() && outlet.can_tell()) {
                    again = again.min(look_in(now));
                }
                continue;
            }
            if !outlet.pipe_is_full() {
                self.full[i] = None;
                again = again.min(look_in(now));
                continue;
            }
            // A bare pipe that is full now may just have become so, but not while
            // a write has been waiting: whoever writes to both takes neither.
            let known = match (held, self.writing) {
                (Some(held), _) => held.max(self.began),
                (None, true) => self.began,
                (None, false) => now,
            };
            let since = *self.full[i].get_or_insert(known);
            let since = since.max(outlet.last_read().unwrap_or(since));
            match now.saturating_duration_since(since) >= after {
                true => stalled.push((i, now.saturating_duration_since(since))),
                false => again = again.min(look_in(since)),
            }
        }
        if let Some(after) = stalled.iter().map(|(_, after)| *after).min() {
            return Err(self.stalled(stalled.iter().map(|(i, _)| *i), after));
        }
        let Some(wake) = ring else {
            return Ok(Again {
                at: again,
                ring: None,
            });
        };
        if self.watch.any_held() {
            // Its clock runs, and the ring would ring on.
            return Ok(Again {
                at: again.min(look_in(now)),
                ring: None,
            });
        }
        // A queue that becomes full between the two rings for others who wait
        // as well.
        wake.silence();
        if self.watch.any_held() {
            wake.ring();
        }
        Ok(Again {
            at: again,
            ring: Some(wake),
        })
    }

    fn stalled(&self, streams: impl Iterator<Item = usize>, after: Duration) -> Stalled {
        let stream = |i: usize| {
            let outlet = self.watch.outlets[i].as_ref()?;
            let figures = outlet.figures().unwrap_or_default();
            Some(StalledStream {
                name: NAMES[i],
                memory_bytes: figures.lag_bytes - figures.disk_bytes,
                disk_bytes: figures.disk_bytes,
                overflow: outlet.overflow(),
            })
        };
        Stalled {
            command: quote(&self.watch.argv),
            streams: streams.filter_map(stream).collect(),
            after,
            writing: self.writing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Origin;

    #[test]
    fn who_is_to_tell_at_once_does_not_look_without_a_pause() {
        let outlet = Outlet::new(Origin::Pipe(Arc::default()), None);
        let watch = StallWatch::new(
            Vec::new(),
            Timeout::after(Duration::ZERO),
            [Some(outlet), None],
        );
        let now = Instant::now();
        let mut patient = Patient::writing(&watch, now);
        assert!(!patient.first().reached(now));
        assert!(!patient.look(now).unwrap().at.reached(now));
    }
}
