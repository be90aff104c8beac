//! Starts programs that shall die with their parent.
//!
//! The kernel's "parent" there is the thread that made the child: when it ends,
//! the signal is sent, though the process may live on for years. So such
//! children are made by a thread that never ends.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::prepare;
use crate::error::{SpawnError, Step};
use crate::sys::spawn::{Plan, Spawned};
use crate::sys::thread;

struct Job {
    plan: Plan,
    answer: Sender<Result<Spawned, SpawnError>>,
}

/// The thread's inbox, and the process that it runs in: a fork has no threads.
static SPAWNER: Mutex<Option<(Sender<Job>, u32)>> = Mutex::new(None);

pub(super) fn spawn(plan: Plan) -> Result<Spawned, SpawnError> {
    let (answer, answered) = channel();
    let lost = || SpawnError::new(Step::Clone, "", std::io::Error::other("the spawner ended"));
    inbox()?.send(Job { plan, answer }).map_err(|_| lost())?;
    answered.recv().map_err(|_| lost())?
}

fn inbox() -> Result<Sender<Job>, SpawnError> {
    let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let this_process = std::process::id();
    if let Some((inbox, process)) = &*spawner
        && *process == this_process
    {
        return Ok(inbox.clone());
    }
    let (inbox, jobs) = channel();
    thread::spawn_quiet("procwright-spawn", move || work(&jobs))
        .map_err(|e| SpawnError::new(Step::Clone, "", e))?;
    *spawner = Some((inbox.clone(), this_process));
    Ok(inbox)
}

fn work(jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        // The caller waits for this answer, so it is there to take it.
        let _ = job.answer.send(prepare::spawn(&job.plan));
    }
}
