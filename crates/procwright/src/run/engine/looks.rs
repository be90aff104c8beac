//! Looks at a program that does not end: on a thread of their own, so that neither a pipe nor
//! a deadline waits for one.
//!
//! An examination has two looks, 200 ms apart, and reads all of `/proc`. It begins so long
//! before a limit that it is over when the limit comes, and what it has seen is of a program
//! to which no signal was sent. Of one that is not over in time nothing is told: the stop does
//! not wait.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use procwright_explain::{BETWEEN, Diagnosis, Examination};
use procwright_os::sync::{Condvar, Mutex};
use procwright_os::time::{Deadline, Timeout};
use procwright_os::wake::Wake;

/// How long before a limit an examination begins: a quarter of it, at least so long that the two
/// looks have room, and at most so long that what they see is not old.
const LEAD: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(5);

/// The shortest limit before which there is an examination: it would take most of a shorter one.
const SHORTEST: Duration = Duration::from_secs(1);

/// An examination before a limit comes again, after output, when this many times as much time
/// has passed as the one before has taken.
const REST: u32 = 100;

/// The examinations of one run.
pub(super) struct Looks {
    shared: Arc<Shared>,
    /// The time after which the caller wants one.
    pub(super) wanted_after: Option<Duration>,
    /// Time at which that is; never once it has begun.
    after: Deadline,
    /// True while the one that the caller wants is under way.
    is_wanted: bool,
}

/// What an examination says, or why there is none.
pub(super) type Told = Result<Box<Diagnosis>, String>;

struct Shared {
    state: Mutex<State>,
    /// Ends the time between two looks: nobody waits for the second one.
    left: Condvar,
}

#[derive(Default)]
struct State {
    /// Time at which the one under way began.
    under_way: Option<Instant>,
    /// The latest that is over: when it began and ended, and what it says.
    over: Option<(Instant, Instant, Told)>,
    is_left: bool,
}

impl Looks {
    /// Those of a run that began at `started`, of which the caller wants one `after` a time.
    pub(super) fn new(started: Instant, wanted_after: Option<Duration>) -> Looks {
        let after = wanted_after.map_or(Timeout::NEVER, Timeout::after);
        let after = after.starting(started);
        Looks {
            wanted_after,
            shared: Arc::new(Shared {
                state: Mutex::new(State::default()),
                left: Condvar::new(),
            }),
            after,
            is_wanted: false,
        }
    }

    /// The time at which the next one begins, before limits that come at these times and are
    /// so long.
    pub(super) fn next(&self, limits: [(Deadline, Timeout); 2]) -> Deadline {
        let state = self.shared.state.lock();
        if state.under_way.is_some() {
            // It rings when it is over.
            return Deadline::NEVER;
        }
        let mut next = self.after;
        for (comes, limit) in limits {
            let Some(limit) = limit.duration().filter(|limit| *limit >= SHORTEST) else {
                continue;
            };
            let lead = (limit / 4).clamp(*LEAD.start(), *LEAD.end());
            let begin = comes.instant().and_then(|comes| comes.checked_sub(lead));
            let Some(begin) = begin else {
                continue;
            };
            let begin = match &state.over {
                Some((began, ..)) if *began >= begin => continue,
                Some((began, ended, _)) => begin.max(*ended + (*ended - *began) * REST),
                None => begin,
            };
            next = next.min(Deadline::at(begin));
        }
        next
    }

    /// Begins one of this process, which rings `wake` when it is over.
    pub(super) fn begin(&mut self, pid: i32, wake: io::Result<Arc<Wake>>, now: Instant) {
        if self.after.reached(now) {
            self.after = Deadline::NEVER;
            self.is_wanted = true;
        }
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("procwright-look".into());
        self.shared.state.lock().under_way = Some(now);
        let begun = wake.and_then(|wake| {
            thread.spawn(move || {
                let told = shared.examine(pid);
                shared.end(told);
                wake.ring();
            })
        });
        if let Err(error) = begun {
            // A thread or a descriptor was refused.
            self.shared.end(Some(Err(error.to_string())));
        }
    }

    /// What the one says that the caller wanted, once, when it is over.
    pub(super) fn wanted(&mut self) -> Option<Told> {
        if !self.is_wanted {
            return None;
        }
        let state = self.shared.state.lock();
        if state.under_way.is_some() {
            return None;
        }
        self.is_wanted = false;
        state.over.as_ref().map(|(_, _, told)| told.clone())
    }

    /// What the latest one says that is over, if it began at `since` or later.
    pub(super) fn latest(&self, since: Instant) -> Option<Box<Diagnosis>> {
        let state = self.shared.state.lock();
        let (began, _, told) = state.over.as_ref()?;
        told.as_ref().ok().filter(|_| *began >= since).cloned()
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        // Nobody waits for one that is under way.
        self.shared.state.lock().is_left = true;
        self.shared.left.notify_all();
    }
}

impl Shared {
    /// Looks twice. `None` if that is not waited for any more.
    fn examine(&self, pid: i32) -> Option<Told> {
        let trouble = |error: io::Error| error.to_string();
        let begun = match Examination::begin(&[pid]) {
            Ok(begun) => begun,
            Err(error) => return Some(Err(trouble(error))),
        };
        if !self.pause() {
            return None;
        }
        Some(begun.finish().map(Box::new).map_err(trouble))
    }

    /// Waits for the time between two looks; false if that is not waited for.
    fn pause(&self) -> bool {
        let end = Instant::now() + BETWEEN;
        let mut state = self.state.lock();
        while !state.is_left {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state = self.left.wait_timeout(state, left).0;
        }
        false
    }

    fn end(&self, told: Option<Told>) {
        let mut state = self.state.lock();
        if let (Some(began), Some(told)) = (state.under_way.take(), told) {
            state.over = Some((began, Instant::now(), told));
        }
    }
}
