//! Maps that the collector has taken: they are ended on threads of their own, which the exit of
//! the process waits for.

use std::thread::JoinHandle;

use magnus::{Error, Object, RModule, function};
use procwright::map::{Remote, Running};
use procwright_os::fork;
use procwright_os::sync::Mutex;

use crate::errors::guarded;
use crate::interruptible::on_thread;

pub(super) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("finish_maps", function!(finish, 0))
}

struct Ending {
    thread: JoinHandle<()>,
    remote: Remote,
    process: u32,
}

/// The lock is only ever tried: another thread may have held it when this process was forked.
static ENDING: Mutex<Vec<Ending>> = Mutex::new(Vec::new());

/// Ends a map that was told to stop, without waiting for it.
pub(super) fn end_behind(running: Running, remote: Remote) {
    let thread = std::thread::Builder::new().name("procwright-map-end".into());
    // Where no thread can be had, the drop that comes with the error waits.
    let Ok(thread) = thread.spawn(move || drop(running)) else {
        return;
    };
    if let Some(mut all) = ENDING.try_lock() {
        all.retain(|one| !one.thread.is_finished() && one.process == fork::generation());
        all.push(Ending {
            thread,
            remote,
            process: fork::generation(),
        });
    }
}

/// Waits until those that were left have ended. What an interrupt throws ends the grace.
fn finish() -> Result<(), Error> {
    guarded(|| {
        let all = ENDING.try_lock().map(|mut all| std::mem::take(&mut *all));
        let (ours, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .flatten()
            .partition(|one| one.process == fork::generation());
        // Threads of the process that this one was forked from.
        std::mem::forget(others);
        if ours.is_empty() {
            return Ok(());
        }
        let remotes: Vec<_> = ours.iter().map(|one| one.remote.clone()).collect();
        let join = move || {
            for one in ours {
                // A panic of its own has been told of.
                let _ = one.thread.join();
            }
        };
        on_thread(join, || remotes.iter().for_each(Remote::kill))
    })
}
