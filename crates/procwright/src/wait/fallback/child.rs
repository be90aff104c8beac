//! Children of ours without pidfds: a thread for each sleeps in `waitid(2)`.
//!
//! It leaves the status where it is (`WNOWAIT`). There is one thread for a child
//! however many wait for it. It cannot be called back, since only the end of the
//! child ends that system call, and so outlasts a wait that is given up: it goes
//! when the child does.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Caller;
use crate::sys::{thread, wait};

#[derive(Debug, Default)]
struct Children {
    /// Who is to be told of which child.
    callers: HashMap<i32, Vec<Caller>>,
    /// The process that the threads are in; a fork has none of them.
    process: u32,
}

static CHILDREN: Mutex<Option<Children>> = Mutex::new(None);

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
    let mut children = lock();
    let children = children.get_or_insert_default();
    if children.process != std::process::id() {
        *children = Children {
            process: std::process::id(),
            ..Children::default()
        };
    }
    if let Some(callers) = children.callers.get_mut(&pid) {
        // The thread may be about to tell of an earlier child that had this
        // number: whoever is rung looks for himself.
        callers.push(caller.clone());
        return Some(job);
    }
    thread::spawn_small("procwright-child", move || sleep(pid)).ok()?;
    children.callers.insert(pid, vec![caller.clone()]);
    Some(job)
}

fn sleep(pid: i32) {
    // An error is an end, too: it is nobody's child any more.
    let _ = wait::await_child(pid);
    let callers = lock()
        .as_mut()
        .and_then(|children| children.callers.remove(&pid));
    for caller in callers.unwrap_or_default() {
        caller.ring();
    }
}

fn lock() -> MutexGuard<'static, Option<Children>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(children) = &mut *lock()
            && let Some(callers) = children.callers.get_mut(&self.pid)
        {
            callers.retain(|one| !one.is_same(&self.caller));
        }
    }
}
