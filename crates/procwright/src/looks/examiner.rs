//! The thread that examines programs of this process. All that are to be examined at a time
//! share the two looks: a thousand children of one timeout cost as much as one.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::batches::{Batches, tell_each};
use procwright_explain::{BETWEEN, Diagnosis, Examination};
use procwright_os::fork::PerProcess;
use procwright_os::sync::{Condvar, Mutex};

/// What was found out of each process that was still there, or why nothing was.
pub(super) type Found = Result<Vec<(i32, Diagnosis)>, String>;

/// An examination that somebody waits for.
pub(super) struct Request {
    pub(super) pids: Vec<i32>,
    /// Whether nobody waits for it any more.
    pub(super) is_left: Box<dyn Fn() -> bool + Send>,
    /// Gets what was found out.
    pub(super) tell: Box<dyn FnOnce(Found) + Send>,
}

#[derive(Default)]
struct Examiner {
    batches: Batches<Request>,
    /// Held by whoever leaves, and by the thread while it asks whether somebody has.
    leaving: Mutex<()>,
    /// Ends the time between two looks for which nobody waits any more.
    left: Condvar,
}

static EXAMINER: PerProcess<Examiner> = PerProcess::new();

/// Has processes examined, with those that others ask for in the meantime.
///
/// # Errors
/// No thread can be had.
pub(super) fn ask(request: Request) -> io::Result<()> {
    let examiner = EXAMINER.get();
    examiner.batches.ask(request, |batch| examiner.work(batch))
}

/// Says that somebody does not wait any more.
pub(super) fn tell_of_leaving() {
    let examiner = EXAMINER.get();
    // The thread has asked before this lock, and sleeps, or asks after it.
    drop(examiner.leaving.lock());
    examiner.left.notify_all();
}

impl Examiner {
    fn work(&self, mut batch: Vec<Request>) {
        batch.retain(|request| !(request.is_left)());
        if batch.is_empty() {
            return;
        }
        let examined = catch_unwind(AssertUnwindSafe(|| self.examine(&batch)));
        let found = examined.unwrap_or_else(|_| Err("the examination has panicked".into()));
        tell_each(batch, |request| {
            let own = |(pid, _): &&(i32, Diagnosis)| request.pids.contains(pid);
            let found = found.as_ref().map_err(String::clone);
            (request.tell)(found.map(|all| all.iter().filter(own).cloned().collect()));
        });
    }

    fn examine(&self, batch: &[Request]) -> Found {
        let pids: Vec<i32> = batch
            .iter()
            .flat_map(|request| &request.pids)
            .copied()
            .collect();
        let begun = Examination::begin_each(&pids).map_err(|error| error.to_string())?;
        if !self.pause(batch) {
            return Err("nobody waits for it".into());
        }
        begun.finish_each().map_err(|error| error.to_string())
    }

    /// Waits for the time between two looks; false if nobody waits for the second.
    fn pause(&self, batch: &[Request]) -> bool {
        let end = Instant::now() + BETWEEN;
        let mut leaving = self.leaving.lock();
        while batch.iter().any(|request| !(request.is_left)()) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            leaving = self.left.wait_timeout(leaving, left).0;
        }
        false
    }
}
