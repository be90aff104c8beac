//! Starts programs that shall die with their parent.
//!
//! The kernel's "parent" there is the thread that made the child: when it ends,
//! the signal is sent, though the process may live on for years. So such
//! children are made by a thread that never ends.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::prepare;
use crate::error::{SpawnError, Step};
use crate::sys::fork::PerProcess;
use crate::sys::spawn::{Plan, Spawned};
use crate::sys::thread;

struct Job {
    plan: Plan,
    answer: Sender<Result<Spawned, SpawnError>>,
}

/// The thread's inbox. A fork has no threads.
static SPAWNER: PerProcess<Mutex<Option<Sender<Job>>>> = PerProcess::new();

pub(super) fn spawn(plan: Plan) -> Result<Spawned, SpawnError> {
    let (answer, answered) = channel();
    let lost = || SpawnError::new(Step::Clone, "", std::io::Error::other("the spawner ended"));
    inbox()?.send(Job { plan, answer }).map_err(|_| lost())?;
    answered.recv().map_err(|_| lost())?
}

fn inbox() -> Result<Sender<Job>, SpawnError> {
    let spawner = SPAWNER.get().lock();
    let mut spawner = spawner.unwrap_or_else(PoisonError::into_inner);
    if let Some(inbox) = &*spawner {
        return Ok(inbox.clone());
    }
    let (inbox, jobs) = channel();
    thread::spawn_quiet("procwright-spawn", move || work(&jobs))
        .map_err(|e| SpawnError::new(Step::Clone, "", e))?;
    Ok(spawner.insert(inbox).clone())
}

fn work(jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        // The caller waits for this answer, so it is there to take it.
        let _ = job.answer.send(prepare::spawn(&job.plan));
    }
}
