//! Looks at programs that do not end, before a limit comes: on a thread of its own, so that
//! neither a pipe nor a deadline waits for one.
//!
//! An examination has two looks, 200 ms apart, and reads all of `/proc`. It begins so long
//! before a limit that it is over when the limit comes, and what it has seen is of programs
//! to which no signal was sent. Of one that is not over in time nothing is told: the stop does
//! not wait.

mod batches;
mod examiner;
mod prompts;

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use examiner::{Found, Request};
use procwright_explain::{Diagnosis, WORTH_A_LOOK};
use procwright_os::fork;
use procwright_os::sync::Mutex;
use procwright_os::time::{Deadline, Timeout};
pub(crate) use prompts::PromptLooks;

/// How long before a limit an examination begins: a quarter of it, at least so long that the two
/// looks have room, and at most so long that what they see is not old.
const LEAD: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(5);

/// An examination before a limit comes again, after output, when this many times as much time
/// has passed as the one before has taken.
const REST: u32 = 100;

/// The examinations of a run, of a child that a caller holds, or of a pipeline.
#[derive(Debug)]
pub(crate) struct Looks {
    shared: Arc<Shared>,
    /// The process whose they are, by [`fork::generation`].
    process: u32,
    /// The time after which the caller wants one.
    pub(crate) wanted_after: Option<Duration>,
    /// Time at which that is; never once it has begun.
    after: Deadline,
    /// True while the one that the caller wants is under way.
    is_wanted: bool,
}

/// What an examination says of a program, or why it says nothing.
pub(crate) type Told = Result<Box<Diagnosis>, String>;

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// True once nobody waits for one that is under way.
    is_left: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Time at which the one under way began.
    under_way: Option<Instant>,
    /// The latest that is over.
    over: Option<Over>,
}

/// An examination that is over.
#[derive(Debug)]
struct Over {
    began: Instant,
    ended: Instant,
    found: Found,
}

impl Looks {
    /// Those of what began at `started`, of which the caller wants one `after` a time.
    pub(crate) fn new(started: Instant, wanted_after: Option<Duration>) -> Looks {
        let after = wanted_after.map_or(Timeout::NEVER, Timeout::after);
        Looks {
            wanted_after,
            shared: Arc::new(Shared::default()),
            process: fork::generation(),
            after: after.starting(started),
            is_wanted: false,
        }
    }

    /// The time at which the next one begins, before limits that come at these times and are
    /// so long, or at which there is one to tell of.
    pub(crate) fn next(&self, limits: [(Deadline, Timeout); 2]) -> Deadline {
        let state = self.shared.state.lock();
        if state.under_way.is_some() {
            // It rings when it is over.
            return Deadline::NEVER;
        }
        if let Some(over) = state.over.as_ref().filter(|_| self.is_wanted) {
            // To be told of. One that could not begin has rung for nobody.
            return Deadline::at(over.ended);
        }
        let mut next = self.after;
        for (comes, limit) in limits {
            let Some(limit) = limit.duration().filter(|limit| *limit >= WORTH_A_LOOK) else {
                continue;
            };
            let lead = (limit / 4).clamp(*LEAD.start(), *LEAD.end());
            let begin = comes.instant().and_then(|comes| comes.checked_sub(lead));
            let Some(begin) = begin else {
                continue;
            };
            let begin = match &state.over {
                Some(over) if over.began >= begin => continue,
                Some(over) => begin.max(over.ended + (over.ended - over.began) * REST),
                None => begin,
            };
            next = next.min(Deadline::at(begin));
        }
        next
    }

    /// Begins one of these processes, which calls `ring` when it is over.
    pub(crate) fn begin(
        &mut self,
        pids: Vec<i32>,
        ring: io::Result<impl FnOnce() + Send + 'static>,
        now: Instant,
    ) {
        if self.after.reached(now) {
            self.after = Deadline::NEVER;
            self.is_wanted = true;
        }
        self.shared.state.lock().under_way = Some(now);
        let asked = ring.and_then(|ring| {
            let (asks, told) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
            examiner::ask(Request {
                pids,
                is_left: Box::new(move || asks.is_left.load(Ordering::Relaxed)),
                tell: Box::new(move |found| {
                    told.end(found);
                    ring();
                }),
            })
        });
        if let Err(error) = asked {
            // A thread or a descriptor was refused.
            self.shared.end(Err(error.to_string()));
        }
    }

    /// What the one says of this process that the caller wanted, once, when it is over.
    pub(crate) fn wanted(&mut self, pid: i32) -> Option<Told> {
        if !self.is_wanted {
            return None;
        }
        let state = self.shared.state.lock();
        if state.under_way.is_some() {
            return None;
        }
        self.is_wanted = false;
        state.over.as_ref().map(|over| over.told(pid))
    }

    /// What the latest one says of this process that is over, if it began at `since` or later.
    pub(crate) fn latest(&self, since: Instant, pid: i32) -> Option<Box<Diagnosis>> {
        let state = self.shared.state.lock();
        let over = state.over.as_ref().filter(|over| over.began >= since)?;
        over.told(pid).ok()
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        // In a fork, which a hook of a run may make, the lock may be held for ever, and nobody
        // examines anything.
        if self.process != fork::generation() {
            return;
        }
        if self.shared.state.lock().under_way.is_some() {
            // Relaxed: the lock of the examiner is between this and who asks for it.
            self.shared.is_left.store(true, Ordering::Relaxed);
            examiner::tell_of_leaving();
        }
    }
}

impl Shared {
    fn end(&self, found: Found) {
        let mut state = self.state.lock();
        if let Some(began) = state.under_way.take() {
            state.over = Some(Over {
                began,
                ended: Instant::now(),
                found,
            });
        }
    }
}

impl Over {
    fn told(&self, pid: i32) -> Told {
        let found = self.found.as_ref().map_err(String::clone)?;
        let of_it = found.iter().find(|(one, _)| *one == pid);
        of_it
            .map(|(_, diagnosis)| Box::new(diagnosis.clone()))
            .ok_or_else(|| format!("no such process: {pid}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::forked;

    #[test]
    fn in_a_fork_their_drop_waits_for_no_lock() {
        let looks = Looks::new(Instant::now(), None);
        let shared = Arc::clone(&looks.shared);
        let held = shared.state.lock();
        // As in a hook, which returns in the fork.
        let pid = forked::fork();
        if pid == 0 {
            std::mem::forget(held);
            drop(looks);
            forked::exit(0);
        }
        drop(held);
        assert_eq!(forked::wait_code(pid), 0);
    }
}
