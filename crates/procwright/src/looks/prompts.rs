//! Looks at whether a program has begun to wait for input: when its output has paused, and on a
//! thread for all programs of this process. Those that are to be looked at at a time share one
//! look, and the time that it takes.
//!
//! Nothing announces such a wait. A program that asks says so first, and is silent then; so it is
//! looked at a moment after its latest output, and again after twice as long each time, up to
//! [`MOST`] times in one silence. Between these looks nothing wakes up for it, and one that talks
//! without a pause is not looked at.
//!
//! One that sleeps over its terminal with a time limit is looked at as well when that is over, as
//! often again: Node, which has timers of its own for its memory, waits without a limit only
//! when these are over, up to a minute after it has asked.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batches::{Batches, tell_each};
use procwright_explain::{InputLook, InputWait, Waiting, input_waits};
use procwright_os::fork::PerProcess;
use procwright_os::sync::Mutex;
use procwright_os::time::Deadline;

/// The silence after which a program is looked at for the first time.
const PAUSE: Duration = Duration::from_millis(100);

/// The most looks in one silence: the last comes after an hour and a half of it.
const MOST: u32 = 16;

/// A look that somebody waits for.
struct Request {
    pid: i32,
    /// The wait that was told last.
    known: Option<Arc<InputWait>>,
    /// Gets what was found.
    tell: Box<dyn FnOnce(InputLook) + Send>,
}

static REQUESTS: PerProcess<Batches<Request>> = PerProcess::new();

/// The looks at one program.
#[derive(Debug)]
pub(crate) struct PromptLooks {
    shared: Arc<Mutex<State>>,
    /// Time of the latest output, or of the start: from which on it is silent.
    silent_since: Instant,
    /// Looks that were begun in this silence, each after twice as long.
    begun: u32,
    /// Those that were begun as a time limit was over.
    begun_at_limits: u32,
}

#[derive(Debug, Default)]
struct State {
    is_under_way: bool,
    /// The wait that was told last.
    known: Option<Arc<InputWait>>,
    /// One that is to be told.
    new: Option<Arc<InputWait>>,
    /// When a sleep is over that has a time limit and could be a wait for input but for that.
    limit_ends: Option<Instant>,
}

impl State {
    /// Notes what a look has found; `at_limit` if it came as a time limit was over.
    fn end_look(&mut self, look: InputLook, at_limit: bool, now: Instant) {
        self.is_under_way = false;
        self.new = look.wait.map(Arc::new);
        // Of one that has just woken up it is not known yet how it sleeps again.
        let left = look.limit.or(at_limit.then_some(Duration::ZERO));
        let ends = left.and_then(|left| now.checked_add(left.saturating_add(PAUSE)));
        // The limit is that of the whole sleep, of which an earlier look has seen more.
        let known = self.limit_ends.filter(|known| *known > now);
        self.limit_ends = match self.new {
            Some(_) => None,
            None => ends.map(|ends| known.map_or(ends, |known| known.min(ends))),
        };
    }
}

impl PromptLooks {
    /// Those at a program that began at `started`.
    pub(crate) fn new(started: Instant) -> PromptLooks {
        PromptLooks {
            shared: Arc::default(),
            silent_since: started,
            begun: 0,
            begun_at_limits: 0,
        }
    }

    /// Notes the time of the latest output. True if that has come since it was noted last.
    pub(crate) fn heard(&mut self, latest: Option<Instant>) -> bool {
        let latest = latest.filter(|latest| *latest > self.silent_since);
        if let Some(latest) = latest {
            self.silent_since = latest;
            self.begun = 0;
            self.begun_at_limits = 0;
            self.shared.lock().limit_ends = None;
        }
        latest.is_some()
    }

    /// The time of the next look, if nothing is heard before; at once, if there is a wait to
    /// be told.
    pub(crate) fn next(&self) -> Deadline {
        let state = self.shared.lock();
        if state.new.is_some() {
            return Deadline::at(self.silent_since);
        }
        if self.begun == MOST || state.is_under_way {
            return Deadline::NEVER;
        }
        let limit_ends = state.limit_ends.filter(|_| self.begun_at_limits < MOST);
        let at_limit = limit_ends.map_or(Deadline::NEVER, Deadline::at);
        self.next_after_pause().min(at_limit)
    }

    /// The time of the next look that comes after twice as long as the one before.
    fn next_after_pause(&self) -> Deadline {
        let next = self.silent_since.checked_add(PAUSE * (1 << self.begun));
        next.map_or(Deadline::NEVER, Deadline::at)
    }

    /// True if a look was begun in this silence.
    pub(crate) fn are_on(&self) -> bool {
        self.begun > 0
    }

    /// Begins a look at the program `pid`, which calls `ring` when it is over.
    pub(crate) fn begin(&mut self, pid: i32, ring: io::Result<impl FnOnce() + Send + 'static>) {
        let at_limit = !self.next_after_pause().reached(Instant::now());
        match at_limit {
            true => self.begun_at_limits += 1,
            false => self.begun += 1,
        }
        // Without a thread or a descriptor there is a look less.
        let Ok(ring) = ring else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let mut state = self.shared.lock();
        state.is_under_way = true;
        let known = state.known.clone();
        drop(state);
        let tell = move |look: InputLook| {
            shared.lock().end_look(look, at_limit, Instant::now());
            ring();
        };
        let request = Request {
            pid,
            known,
            tell: Box::new(tell),
        };
        if REQUESTS.get().ask(request, look_at).is_err() {
            self.shared.lock().is_under_way = false;
        }
    }

    /// True if there is a wait to be told.
    pub(crate) fn has_found(&self) -> bool {
        self.shared.lock().new.is_some()
    }

    /// What it has begun to wait for, once for each wait.
    pub(crate) fn found(&mut self) -> Option<Box<Waiting>> {
        let mut state = self.shared.lock();
        let new = state.new.take()?;
        let waiting = Box::new(new.waiting.clone());
        state.known = Some(new);
        Some(waiting)
    }
}

fn look_at(batch: Vec<Request>) {
    let asked: Vec<_> = batch
        .iter()
        .map(|request| (request.pid, request.known.as_deref()))
        .collect();
    let looked = catch_unwind(AssertUnwindSafe(|| input_waits(&asked)));
    let mut found = looked.unwrap_or_default().into_iter();
    tell_each(batch, |request| {
        // One that cannot be looked at is not known to wait.
        (request.tell)(found.next().and_then(Result::ok).unwrap_or_default());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a look has found at a program that sleeps with this time limit.
    fn limited(limit: u64) -> InputLook {
        InputLook {
            limit: Some(Duration::from_secs(limit)),
            ..InputLook::default()
        }
    }

    /// Time after its latest output at which it is looked at next.
    fn next(looks: &PromptLooks) -> Duration {
        let next = looks.next().instant().expect("there is a next look");
        next - looks.silent_since
    }

    /// The looks at a program that has been silent for 7 s, and sleeps with a time limit from
    /// then on.
    fn looks(limit: u64) -> (PromptLooks, Instant) {
        let began = Instant::now();
        let mut looks = PromptLooks::new(began);
        looks.begun = 7;
        let at = began + Duration::from_secs(7);
        looks.shared.lock().end_look(limited(limit), false, at);
        (looks, at)
    }

    #[test]
    fn it_looks_when_a_time_limit_is_over() {
        let (looks, at) = looks(2);
        assert_eq!(next(&looks), Duration::from_secs(9) + PAUSE);
        // What is left of the same sleep is less than its limit.
        let later = at + Duration::from_secs(1);
        looks.shared.lock().end_look(limited(2), false, later);
        assert_eq!(next(&looks), Duration::from_secs(9) + PAUSE);
        // That one is over.
        let later = at + Duration::from_secs(3);
        looks.shared.lock().end_look(limited(2), true, later);
        assert_eq!(next(&looks), Duration::from_secs(12) + PAUSE);
    }

    #[test]
    fn who_has_just_woken_up_is_looked_at_again() {
        let (looks, at) = looks(2);
        let later = at + Duration::from_secs(3);
        let nothing = InputLook::default();
        looks.shared.lock().end_look(nothing.clone(), true, later);
        assert_eq!(next(&looks), Duration::from_secs(10) + PAUSE);
        looks.shared.lock().end_look(nothing, false, later);
        assert_eq!(next(&looks), Duration::from_millis(12_800));
    }

    #[test]
    fn a_long_time_limit_changes_nothing() {
        let (looks, _) = looks(60);
        assert_eq!(next(&looks), Duration::from_millis(12_800));
    }

    #[test]
    fn one_that_looks_now_and_then_is_looked_at_so_often_and_no_more() {
        let (mut looks, _) = looks(1);
        looks.begun_at_limits = MOST;
        assert_eq!(next(&looks), Duration::from_millis(12_800));
    }

    #[test]
    fn output_ends_what_was_known_of_a_time_limit() {
        let (mut looks, at) = looks(2);
        assert!(looks.heard(Some(at)));
        assert_eq!(next(&looks), PAUSE);
    }
}
