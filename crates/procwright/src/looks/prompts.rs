//! Looks at whether a program has begun to wait for input: when its output has paused, and on a
//! thread for all programs of this process. Those that are to be looked at at a time share one
//! look, and the time that it takes.
//!
//! Nothing announces such a wait. A program that asks says so first, and is silent then; so it is
//! looked at a moment after its latest output, and again after twice as long each time, up to
//! [`MOST`] times in one silence. Between these looks nothing wakes up for it, and one that talks
//! without a pause is not looked at.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batches::Batches;
use procwright_explain::{InputWait, Waiting, input_waits};
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
    tell: Box<dyn FnOnce(Option<InputWait>) + Send>,
}

static REQUESTS: PerProcess<Batches<Request>> = PerProcess::new();

/// The looks at one program.
#[derive(Debug)]
pub(crate) struct PromptLooks {
    shared: Arc<Mutex<State>>,
    /// Time of the latest output, or of the start: from which on it is silent.
    silent_since: Instant,
    /// Looks that were begun in this silence.
    begun: u32,
}

#[derive(Debug, Default)]
struct State {
    is_under_way: bool,
    /// The wait that was told last.
    known: Option<Arc<InputWait>>,
    /// One that is to be told.
    new: Option<Arc<InputWait>>,
}

impl PromptLooks {
    /// Those at a program that began at `started`.
    pub(crate) fn new(started: Instant) -> PromptLooks {
        PromptLooks {
            shared: Arc::default(),
            silent_since: started,
            begun: 0,
        }
    }

    /// Notes the time of the latest output. True if that has come since it was noted last.
    pub(crate) fn heard(&mut self, latest: Option<Instant>) -> bool {
        let latest = latest.filter(|latest| *latest > self.silent_since);
        if let Some(latest) = latest {
            self.silent_since = latest;
            self.begun = 0;
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
        let next = self.silent_since.checked_add(PAUSE * (1 << self.begun));
        next.map_or(Deadline::NEVER, Deadline::at)
    }

    /// True if a look was begun in this silence.
    pub(crate) fn are_on(&self) -> bool {
        self.begun > 0
    }

    /// Begins a look at the program `pid`, which calls `ring` when it is over.
    pub(crate) fn begin(&mut self, pid: i32, ring: io::Result<impl FnOnce() + Send + 'static>) {
        self.begun += 1;
        // Without a thread or a descriptor there is a look less.
        let Ok(ring) = ring else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let mut state = self.shared.lock();
        state.is_under_way = true;
        let known = state.known.clone();
        drop(state);
        let tell = move |found: Option<InputWait>| {
            let mut state = shared.lock();
            state.is_under_way = false;
            state.new = found.map(Arc::new);
            drop(state);
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
    for request in batch {
        // One that cannot be looked at is not known to wait.
        (request.tell)(found.next().and_then(Result::ok).flatten());
    }
}
