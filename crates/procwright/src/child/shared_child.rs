//! The part of a child that its feed holds as well: all but its streams.

use std::time::{Duration, Instant};

use super::child_process::ChildProcess;
use crate::error::BoxError;
use crate::trace::Trace;
use procwright_os::fork::ForkId;
use procwright_os::proc;
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::wait::Usage;
use procwright_process::holders::RunPipe;
use procwright_process::{
    Exit, Orphans, Process, Scope, Stop, StopTarget, Survivor, WatchedBeside,
};

/// A child without its streams.
#[derive(Debug)]
pub(super) struct SharedChild {
    /// The process whose child it is. A fork of that neither stops it nor waits for a lock
    /// of `running`, whose owner it may not have.
    owner: ForkId,
    pub(super) process: Process,
    running: Mutex<ChildProcess>,
    /// The trace of `running`, which needs no lock: a stop holds that for long.
    trace: Trace,
    started: Instant,
    pipes: Vec<RunPipe>,
    /// Session that it was started in.
    session: Option<i32>,
    /// The policy by which it is stopped, unless a call says otherwise.
    pub(super) stop: Stop,
    /// The processes that the latest stop could not end, once there was one.
    stopped: Mutex<Option<Vec<Survivor>>>,
    /// The error that cut its input short, until a wait has told it.
    failed: Mutex<Option<BoxError>>,
}

/// How a child ended, and what it used.
pub(crate) struct ChildEnd {
    pub(crate) exit: Exit,
    /// The time from its start until its end was seen.
    pub(crate) duration: Duration,
    pub(crate) usage: Option<Usage>,
    pub(crate) max_rss: Option<u64>,
    /// The processes that a stop could not end, if there was one.
    pub(crate) stopped: Option<Vec<Survivor>>,
}

impl SharedChild {
    pub(super) fn new(
        running: ChildProcess,
        started: Instant,
        pipes: Vec<RunPipe>,
        stop: Stop,
    ) -> SharedChild {
        SharedChild {
            owner: ForkId::current(),
            process: running.process(),
            trace: running.trace(),
            session: running.session(),
            running: Mutex::new(running.hand_out()),
            started,
            pipes,
            stop,
            stopped: Mutex::new(None),
            failed: Mutex::new(None),
        }
    }

    /// How it ended, none while it is alive. Does not wait. Reaps it, unless it has left
    /// processes that are found by its number.
    pub(super) fn try_wait(&self) -> Option<Exit> {
        // The process is asked first, so that its clones know it too.
        let exit = self.process.exit()?;
        let Some(mut running) = self.try_running() else {
            // Another thread is stopping it, and will reap it.
            return Some(exit);
        };
        running.note_end();
        running.ended().map(|(exit, _)| exit)
    }

    /// Stops it; see [`Child::stop`](super::Child::stop).
    pub(super) fn stop_beside(
        &self,
        stop: Stop,
        beside: Option<WatchedBeside<'_>>,
    ) -> Vec<Survivor> {
        if !self.is_ours() {
            return self.left_to_parent();
        }
        // The lock is held all the while, so that no other thread reaps it and frees its
        // number.
        let mut running = self.running();
        let trace = running.trace();
        trace.say(|| format!("stop: {stop}"));
        let target = StopTarget {
            root: self.process.proc_id(),
            pipes: self.pipes.clone(),
            session: self.session,
            orphans: Orphans::Unknown,
        };
        let survivors = self.process.stop_all(stop, target, beside);
        for survivor in &survivors {
            trace.say(|| format!("left: {survivor}"));
        }
        // Clones of the process learn the status here, before it is gone.
        let _ = self.process.exit();
        // What is left of its group is found by the next stop.
        match survivors.is_empty() && stop.scope() != Scope::Process {
            true => running.collect(),
            false => running.note_end(),
        };
        let mut stopped = self.stopped.lock();
        *stopped = Some(survivors.clone());
        survivors
    }

    /// False in a fork of the process that has started it.
    pub(super) fn is_ours(&self) -> bool {
        self.owner.is_current()
    }

    /// What a stop in a fork leaves: the program, if it lives. It is the parent's to stop.
    fn left_to_parent(&self) -> Vec<Survivor> {
        if self.process.exit().is_some() {
            return Vec::new();
        }
        let pid = self.process.pid();
        let (name, state) = match proc::stat(pid) {
            Ok(stat) => (stat.name.to_string(), stat.state),
            Err(_) => ("?".to_owned(), '?'),
        };
        vec![Survivor::new(pid, name, state)]
    }

    /// Waits while it is being stopped.
    fn running(&self) -> MutexGuard<'_, ChildProcess> {
        self.running.lock()
    }

    /// The process, none while it is being stopped.
    fn try_running(&self) -> Option<MutexGuard<'_, ChildProcess>> {
        self.running.try_lock()
    }

    pub(super) fn trace(&self) -> Trace {
        self.trace
    }

    pub(super) fn end(&self) -> Option<ChildEnd> {
        let exit = self.try_wait()?;
        let survivors = match self.is_ours() {
            true => self.stopped.lock().clone(),
            false => None,
        };
        let running = self.try_running();
        let running = running.as_ref();
        let seen = running.and_then(|running| running.seen());
        Some(ChildEnd {
            exit,
            duration: seen.unwrap_or_else(Instant::now) - self.started,
            usage: running.and_then(|running| running.ended()?.1),
            max_rss: running.and_then(|running| running.max_rss()),
            stopped: survivors,
        })
    }

    /// Stops it because its input failed. The next wait tells the error, once.
    pub(super) fn stop_for_input(&self, error: BoxError) {
        *self.failed() = Some(error);
        // Nobody reads the input of a program whose end the caller has seen, and what that
        // has left is the caller's to stop.
        if self.running().ended().is_none() {
            self.stop_beside(self.stop, None);
        }
    }

    /// The error that cut its input short, if no wait has told it.
    pub(super) fn take_failure(&self) -> Option<BoxError> {
        if !self.is_ours() {
            return None;
        }
        self.failed().take()
    }

    fn failed(&self) -> MutexGuard<'_, Option<BoxError>> {
        self.failed.lock()
    }
}
