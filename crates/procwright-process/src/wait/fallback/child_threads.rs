//! Own children without pidfds: one thread for each sleeps in `waitid(2)`.
//!
//! The thread leaves the status where it is (`WNOWAIT`). There is one thread for a
//! child, however many waits there are for it. Only the end of the child ends the
//! system call, so the thread outlasts a wait that is given up.

use std::collections::HashMap;

use super::Notify;
use procwright_os::fork::PerProcess;
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::{thread, wait};

/// Sets to notify, by number of the child.
type Notifies = HashMap<i32, Vec<Notify>>;

static NOTIFIES: PerProcess<Mutex<Notifies>> = PerProcess::new();

/// A watch of one child. The drop takes the set off the list.
#[derive(Debug)]
pub(super) struct ChildWatch {
    pid: i32,
    notify: Notify,
}

/// Watches an own child; none if no thread can be had.
pub(super) fn watch(pid: i32, notify: &Notify) -> Option<ChildWatch> {
    let job = ChildWatch {
        pid,
        notify: notify.clone(),
    };
    let mut all = lock();
    if let Some(notifies) = all.get_mut(&pid) {
        // The thread may be about to tell of an earlier child that had this number:
        // the notified set looks itself.
        notifies.push(notify.clone());
        return Some(job);
    }
    thread::spawn_small("procwright-child", move || await_end(pid)).ok()?;
    all.insert(pid, vec![notify.clone()]);
    Some(job)
}

fn await_end(pid: i32) {
    // An error is an end, too: it is no child any more.
    let _ = wait::await_child(pid);
    let notifies = lock().remove(&pid);
    for notify in notifies.unwrap_or_default() {
        notify.notify();
    }
}

fn lock() -> MutexGuard<'static, Notifies> {
    let notifies = NOTIFIES.get();
    notifies.lock()
}

impl Drop for ChildWatch {
    fn drop(&mut self) {
        if let Some(notifies) = lock().get_mut(&self.pid) {
            notifies.retain(|one| !one.is_same(&self.notify));
        }
    }
}
