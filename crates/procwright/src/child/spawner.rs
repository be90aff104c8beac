//! Starts programs that shall die with their parent.
//!
//! The kernel's "parent" there is the thread that made the child: when it ends,
//! the signal is sent, though the process may live on for years. So such
//! children are made by a thread that never ends.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::plan;
use crate::error::{SpawnError, Step};
use procwright_os::fork::PerProcess;
use procwright_os::spawn::{Plan, Spawned};
use procwright_os::sync::Mutex;
use procwright_os::thread;

/// A program to start, and where the thread says how that went.
struct SpawnRequest {
    plan: Plan,
    answer: Sender<Result<Spawned, SpawnError>>,
}

/// The inbox of the thread. Per process, since a fork has no threads.
static SPAWNER: PerProcess<Mutex<Option<Sender<SpawnRequest>>>> = PerProcess::new();

pub(super) fn spawn(plan: Plan) -> Result<Spawned, SpawnError> {
    let (answer, answered) = channel();
    let lost = || SpawnError::new(Step::Clone, "", std::io::Error::other("the spawner ended"));
    inbox()?
        .send(SpawnRequest { plan, answer })
        .map_err(|_| lost())?;
    answered.recv().map_err(|_| lost())?
}

fn inbox() -> Result<Sender<SpawnRequest>, SpawnError> {
    let mut spawner = SPAWNER.get().lock();
    if let Some(inbox) = &*spawner {
        return Ok(inbox.clone());
    }
    let (inbox, requests) = channel();
    thread::spawn_quiet("procwright-spawn", move || work(&requests))
        .map_err(|e| SpawnError::new(Step::Clone, "", e))?;
    Ok(spawner.insert(inbox).clone())
}

fn work(requests: &Receiver<SpawnRequest>) {
    while let Ok(request) = requests.recv() {
        // The caller waits for this answer, so it is there to take it.
        let _ = request.answer.send(plan::spawn(&request.plan));
    }
}
