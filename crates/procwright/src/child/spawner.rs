//! Starts programs that shall die with their parent.
//!
//! The kernel's "parent" there is the thread that made the child: when it ends, the signal
//! is sent, though the process may live on for years. So each such child is made by a
//! thread that sleeps until the child has ended. It is made by the caller's thread, and the
//! kernel gives a new thread all that the one has which makes it: credentials, capabilities,
//! `no_new_privs`, seccomp filters, Landlock domains, namespaces, the directory, processors,
//! priorities. The program inherits it from there as if the caller had started it itself.

use std::io;
use std::sync::mpsc::channel;

use super::plan;
use crate::error::{SpawnError, Step};
use procwright_os::spawn::{Plan, Spawned};
use procwright_os::{thread, wait};

/// Stack size: enough for the message of a panic.
const STACK: usize = 128 * 1024;

/// Starts the program of the plan, on a thread that lives as long as it.
pub(super) fn spawn(plan: Plan) -> Result<Spawned, SpawnError> {
    let (answer, answered) = channel();
    let work = move || {
        let spawned = plan::spawn(&plan);
        drop(plan);
        let child = spawned.as_ref().ok().map(|spawned| spawned.pid);
        // The caller waits for this answer, so it is there to take it.
        let _ = answer.send(spawned);
        drop(answer);
        if let Some(child) = child {
            // By number, which takes no descriptor. Once the child is reaped the number may be
            // that of another child, and this thread sleeps for as long as that lives.
            let _ = wait::await_child(child);
        }
    };
    let thread = thread::spawn_bare(c"procwright-spawn", STACK, work);
    let thread = thread.map_err(|error| SpawnError::new(Step::Thread, "", error))?;
    let lost = |_| SpawnError::new(Step::Clone, "", io::Error::other("the thread ended"));
    let answer = answered.recv().map_err(lost)?;
    if answer.is_err() {
        // It has nothing left to do: of a start that failed nothing is left.
        thread.join();
    }
    answer
}
