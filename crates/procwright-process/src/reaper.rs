//! A background reaper for own children that no call waits for any more.
//!
//! A child that could not be killed, or whose run ended in a panic, would stay
//! a zombie for as long as its parent lives. A library may not own SIGCHLD and
//! may not reap what it did not start, so such children are watched through
//! their pidfds, by a thread that exists only while there are any.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use procwright_os::fork::PerProcess;
use procwright_os::poll::{self, Flags};
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;
use procwright_os::{thread, wait};

#[derive(Debug, Default)]
struct Abandoned {
    waiting: Vec<AbandonedChild>,
    /// Wakes the thread; none while there is none.
    thread: Option<Arc<Wake>>,
}

/// A child by its number and descriptor.
#[derive(Debug)]
struct AbandonedChild(i32, OwnedFd);

impl AbandonedChild {
    /// Reaps it if it has ended; false while it is to be waited for.
    fn is_over(&self) -> bool {
        !matches!(wait::reap(self.0, self.1.as_fd()), Ok(None))
    }
}

/// The abandoned children of this process. A fork has neither them nor the thread.
static ABANDONED: PerProcess<Mutex<Abandoned>> = PerProcess::new();

fn abandoned() -> MutexGuard<'static, Abandoned> {
    let abandoned = ABANDONED.get();
    abandoned.lock()
}

/// Takes over an own child that has not been reaped, by its number and pidfd.
pub fn adopt(pid: i32, pidfd: OwnedFd) {
    let child = AbandonedChild(pid, pidfd);
    if child.is_over() {
        return;
    }
    let mut abandoned = abandoned();
    match &abandoned.thread {
        Some(wake) => wake.ring(),
        None => abandoned.thread = start(),
    }
    // Without a thread (no descriptor or memory left) the child waits in the list until
    // a later call starts one.
    abandoned.waiting.push(child);
}

fn start() -> Option<Arc<Wake>> {
    let wake = Arc::new(Wake::new().ok()?);
    let for_thread = Arc::clone(&wake);
    thread::spawn_quiet("procwright-reap", move || reap_all(&for_thread)).ok()?;
    Some(wake)
}

fn reap_all(wake: &Wake) {
    let mut mine: Vec<AbandonedChild> = Vec::new();
    loop {
        wake.silence();
        {
            let mut abandoned = abandoned();
            mine.append(&mut abandoned.waiting);
            mine.retain(|child| !child.is_over());
            if mine.is_empty() {
                // Under the lock, so that the next call starts a new thread.
                abandoned.thread = None;
                return;
            }
        }
        let mut fds = vec![poll::Fd::new(wake, Flags::IN)];
        fds.extend(mine.iter().map(|child| poll::Fd::new(&child.1, Flags::IN)));
        match poll::poll(&mut fds, Deadline::NEVER) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                // Too many for one poll: they wait in the list for the next thread.
                let mut abandoned = abandoned();
                abandoned.waiting.append(&mut mine);
                abandoned.thread = None;
                return;
            }
            _ => {}
        }
    }
}
