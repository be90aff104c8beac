//! Reaps children that nobody waits for any more.
//!
//! A child that could not be killed, or whose run ended in a panic, would stay
//! a zombie for as long as its parent lives. A library may not own SIGCHLD and
//! may not reap what it did not start, so such children are watched through
//! their pidfds, by a thread that exists only while there are any.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sys::fork::PerProcess;
use crate::sys::poll::{self, Flags};
use crate::sys::wake::Wake;
use crate::sys::{thread, wait};
use crate::time::Deadline;

#[derive(Debug, Default)]
struct Abandoned {
    waiting: Vec<OwnedFd>,
    /// The thread's wake-up.
    thread: Option<Arc<Wake>>,
}

/// A fork has neither the thread nor the children.
static ABANDONED: PerProcess<Mutex<Abandoned>> = PerProcess::new();

fn abandoned() -> MutexGuard<'static, Abandoned> {
    let abandoned = ABANDONED.get();
    abandoned.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over a child that has not been reaped.
pub(crate) fn adopt(pidfd: OwnedFd) {
    if !matches!(wait::reap(pidfd.as_fd()), Ok(None)) {
        return;
    }
    let mut abandoned = abandoned();
    match &abandoned.thread {
        Some(wake) => wake.ring(),
        None => abandoned.thread = start(),
    }
    // Without a thread (no descriptor or no memory left) it waits in the list
    // for the next one.
    abandoned.waiting.push(pidfd);
}

fn start() -> Option<Arc<Wake>> {
    let wake = Arc::new(Wake::new().ok()?);
    let for_thread = Arc::clone(&wake);
    thread::spawn_quiet("procwright-reap", move || reap_all(&for_thread)).ok()?;
    Some(wake)
}

fn reap_all(wake: &Wake) {
    let mut mine: Vec<OwnedFd> = Vec::new();
    loop {
        wake.silence();
        {
            let mut abandoned = abandoned();
            mine.append(&mut abandoned.waiting);
            mine.retain(|pidfd| matches!(wait::reap(pidfd.as_fd()), Ok(None)));
            if mine.is_empty() {
                // Under the lock: whoever adopts next starts a new thread.
                abandoned.thread = None;
                return;
            }
        }
        let mut fds = vec![poll::Fd::new(wake, Flags::IN)];
        fds.extend(mine.iter().map(|pidfd| poll::Fd::new(pidfd, Flags::IN)));
        match poll::poll(&mut fds, Deadline::NEVER) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                // Too many for one poll. They wait for the next thread.
                let mut abandoned = abandoned();
                abandoned.waiting.append(&mut mine);
                abandoned.thread = None;
                return;
            }
            _ => {}
        }
    }
}
