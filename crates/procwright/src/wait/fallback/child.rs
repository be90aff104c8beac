//! Children of ours without pidfds: a thread for each sleeps in `waitid(2)`.
//!
//! It leaves the status where it is (`WNOWAIT`). There is one thread for a child
//! however many wait for it. It cannot be called back, since only the end of the
//! child ends that system call, and so outlasts a wait that is given up: it goes
//! when the child does.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Caller;
use crate::sys::fork::PerProcess;
use crate::sys::{thread, wait};

/// Who is to be told of which child.
type Callers = HashMap<i32, Vec<Caller>>;

static CALLERS: PerProcess<Mutex<Callers>> = PerProcess::new();

/// Takes the caller off the list.
#[derive(Debug)]
pub(super) struct Job {
    pid: i32,
    caller: Caller,
}

/// None if no thread can be had.
pub(super) fn watch(pid: i32, caller: &Caller) -> Option<Job> {
    let job = Job {
        pid,
        caller: caller.clone(),
    };
    let mut all = lock();
    if let Some(callers) = all.get_mut(&pid) {
        // The thread may be about to tell of an earlier child that had this
        // number: whoever is rung looks for himself.
        callers.push(caller.clone());
        return Some(job);
    }
    thread::spawn_small("procwright-child", move || sleep(pid)).ok()?;
    all.insert(pid, vec![caller.clone()]);
    Some(job)
}

fn sleep(pid: i32) {
    // An error is an end, too: it is nobody's child any more.
    let _ = wait::await_child(pid);
    let callers = lock().remove(&pid);
    for caller in callers.unwrap_or_default() {
        caller.ring();
    }
}

fn lock() -> MutexGuard<'static, Callers> {
    let callers = CALLERS.get();
    callers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(callers) = lock().get_mut(&self.pid) {
            callers.retain(|one| !one.is_same(&self.caller));
        }
    }
}
