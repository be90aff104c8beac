//! The last resort: one thread that looks at everybody now and then.
//!
//! For strangers where there are no pidfds, and for a reap where the system does
//! not tell of it. Every look is counted, see [`stats`](crate::wait::stats).

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Caller;
use crate::ident::Watched;
use crate::sys::fork::PerProcess;
use crate::sys::thread;
use crate::wait::{Event, stats};

/// Between two rounds of looks. It grows from the first to the last while
/// nobody ends, by a third each time: a process that ends soon is noticed soon,
/// one that lives long costs ten looks a second.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// The pause is at least this many times what a round takes, so that thousands
/// take no more than two hundredths of a processor.
const IDLE_SHARE: u32 = 50;

#[derive(Debug)]
struct Entry {
    process: Watched,
    event: Event,
    caller: Caller,
}

#[derive(Debug, Default)]
struct Looker {
    entries: Vec<Entry>,
    /// Somebody new has come: look soon.
    fresh: bool,
    /// Whether the thread is there.
    runs: bool,
}

#[derive(Debug, Default)]
struct Shared {
    looker: Mutex<Looker>,
    changed: Condvar,
}

static SHARED: PerProcess<Shared> = PerProcess::new();

/// Ends the looks.
#[derive(Debug)]
pub(super) struct Job(Caller);

pub(super) fn watch(process: Watched, event: Event, caller: Caller) -> std::io::Result<Job> {
    let job = Job(caller.clone());
    let shared = SHARED.get();
    let mut looker = shared.lock();
    if !looker.runs {
        thread::spawn_quiet("procwright-look", || look(shared))?;
        looker.runs = true;
    }
    looker.entries.push(Entry {
        process,
        event,
        caller,
    });
    looker.fresh = true;
    shared.changed.notify_all();
    Ok(job)
}

fn look(shared: &Shared) {
    let mut pause = PAUSE.0;
    let mut looker = shared.lock();
    loop {
        if looker.entries.is_empty() {
            // Under the lock: whoever comes next starts a new thread.
            looker.runs = false;
            return;
        }
        let begun = Instant::now();
        stats::looked(looker.entries.len() as u64);
        let over = looker
            .entries
            .extract_if(.., |entry| entry.event.is_over(&entry.process));
        let over: Vec<Entry> = over.collect();
        let took = begun.elapsed();
        pause = match over.is_empty() && !looker.fresh {
            true => (pause * 4 / 3).min(PAUSE.1),
            false => PAUSE.0,
        };
        looker.fresh = false;
        let until = Instant::now() + pause.max(took * IDLE_SHARE);
        for entry in over {
            entry.caller.ring();
        }
        while !looker.fresh && !looker.entries.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = shared.changed.wait_timeout(looker, left);
            looker = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Looker> {
        self.looker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let shared = SHARED.get();
        shared
            .lock()
            .entries
            .retain(|entry| !entry.caller.is_same(&self.0));
        shared.changed.notify_all();
    }
}
