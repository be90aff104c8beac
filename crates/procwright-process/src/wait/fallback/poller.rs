//! The last resort: one thread that looks at processes now and then.
//!
//! It serves other processes where there are no pidfds, and reaps where the system does
//! not tell of them. Every look is counted, see [`stats()`](crate::wait::stats()).

use std::time::{Duration, Instant};

use super::Notify;
use crate::process_handle::ProcessHandle;
use crate::wait::{Event, stats};
use procwright_os::fork::PerProcess;
use procwright_os::sync::{Condvar, Mutex, MutexGuard};
use procwright_os::thread;

/// Pause between two rounds of looks. It grows from the first to the last by a third
/// each time while no process ends: one that ends soon is noticed soon, one that lives
/// long costs ten looks a second.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// Smallest ratio of the pause to the time of a round: thousands of processes take no
/// more than two hundredths of a processor.
const IDLE_SHARE: u32 = 50;

#[derive(Debug)]
struct Polled {
    process: ProcessHandle,
    event: Event,
    notify: Notify,
}

#[derive(Debug, Default)]
struct PollList {
    entries: Vec<Polled>,
    /// An entry was added: look soon.
    has_new: bool,
    /// Whether the thread runs.
    runs: bool,
}

#[derive(Debug, Default)]
struct Poller {
    list: Mutex<PollList>,
    changed: Condvar,
}

static POLLER: PerProcess<Poller> = PerProcess::new();

/// A watch by looks. The drop ends it.
#[derive(Debug)]
pub(super) struct Poll(Notify);

pub(super) fn watch(process: ProcessHandle, event: Event, notify: Notify) -> std::io::Result<Poll> {
    let job = Poll(notify.clone());
    let poller = POLLER.get();
    let mut list = poller.lock();
    if !list.runs {
        thread::spawn_quiet("procwright-look", || run(poller))?;
        list.runs = true;
    }
    list.entries.push(Polled {
        process,
        event,
        notify,
    });
    list.has_new = true;
    poller.changed.notify_all();
    Ok(job)
}

fn run(poller: &Poller) {
    let mut pause = PAUSE.0;
    let mut list = poller.lock();
    loop {
        if list.entries.is_empty() {
            // Under the lock, so that the next watch starts a new thread.
            list.runs = false;
            return;
        }
        let begun = Instant::now();
        stats::count_looks(list.entries.len() as u64);
        let over = list
            .entries
            .extract_if(.., |entry| entry.event.is_over(&entry.process));
        let over: Vec<Polled> = over.collect();
        let took = begun.elapsed();
        pause = match over.is_empty() && !list.has_new {
            true => (pause * 4 / 3).min(PAUSE.1),
            false => PAUSE.0,
        };
        list.has_new = false;
        let until = Instant::now() + pause.max(took * IDLE_SHARE);
        for entry in over {
            entry.notify.notify();
        }
        while !list.has_new && !list.entries.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = poller.changed.wait_timeout(list, left);
            list = waited.0;
        }
    }
}

impl Poller {
    fn lock(&self) -> MutexGuard<'_, PollList> {
        self.list.lock()
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let poller = POLLER.get();
        poller
            .lock()
            .entries
            .retain(|entry| !entry.notify.is_same(&self.0));
        poller.changed.notify_all();
    }
}
