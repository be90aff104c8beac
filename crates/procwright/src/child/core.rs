//! A child that is handed out, without its streams: what more than one may hold.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::Running;
use crate::holders::RunPipe;
use crate::process::{Beside, Exit, Process, Stop, Survivor, Target};
use crate::spool::fifo::BoxError;
use crate::sys::wait::Usage;
use crate::trace::Trace;

#[derive(Debug)]
pub(super) struct Core {
    pub(super) process: Process,
    running: Mutex<Running>,
    /// Beside it, for those that may not wait for a stop.
    trace: Trace,
    started: Instant,
    pipes: Vec<RunPipe>,
    /// How it is stopped, unless a call says otherwise.
    pub(super) stop: Stop,
    /// Those whom the latest stop could not end, once there was one.
    stopped: Mutex<Option<Vec<Survivor>>>,
    /// Why its input is not whole, until somebody was told.
    failed: Mutex<Option<BoxError>>,
}

/// What is known of a child that has ended.
pub(crate) struct End {
    pub(crate) exit: Exit,
    /// Until its end was seen.
    pub(crate) duration: Duration,
    pub(crate) usage: Option<Usage>,
    pub(crate) max_rss: Option<u64>,
    /// Whom a stop could not end, if there was one.
    pub(crate) stopped: Option<Vec<Survivor>>,
}

impl Core {
    pub(super) fn new(running: Running, started: Instant, pipes: Vec<RunPipe>, stop: Stop) -> Core {
        Core {
            process: running.process(),
            trace: running.trace(),
            running: Mutex::new(running.hand_out()),
            started,
            pipes,
            stop,
            stopped: Mutex::new(None),
            failed: Mutex::new(None),
        }
    }

    /// How it ended, none while it is alive. Reaps it, and does not wait.
    pub(super) fn try_wait(&self) -> Option<Exit> {
        // Asked first, so that clones of the process know it too.
        let exit = self.process.exit()?;
        let Some(mut running) = self.try_running() else {
            // Somebody stops what it has left behind, and will reap it.
            return Some(exit);
        };
        running.collect();
        running.ended().map(|(exit, _)| exit)
    }

    /// Stops it; see [`Child::stop`](super::Child::stop).
    pub(super) fn stop_beside(&self, stop: Stop, beside: Option<Beside<'_>>) -> Vec<Survivor> {
        // Held all the while, so that nobody reaps it and frees its number.
        let mut running = self.running();
        if running.ended().is_some() {
            return Vec::new();
        }
        let trace = running.trace();
        trace.say(|| format!("stop: {stop}"));
        let target = Target {
            root: self.process.known(),
            pipes: self.pipes.clone(),
            adopts: false,
        };
        let survivors = self.process.stop_all(stop, target, beside);
        for survivor in &survivors {
            trace.say(|| format!("left: {survivor}"));
        }
        // For clones of the process, before the status is gone.
        let _ = self.process.exit();
        running.collect();
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        *stopped = Some(survivors.clone());
        survivors
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None while it is being stopped.
    fn try_running(&self) -> Option<MutexGuard<'_, Running>> {
        match self.running.try_lock() {
            Ok(running) => Some(running),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn trace(&self) -> Trace {
        self.trace
    }

    pub(super) fn end(&self) -> Option<End> {
        let exit = self.try_wait()?;
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let survivors = stopped.clone();
        drop(stopped);
        let running = self.try_running();
        let running = running.as_ref();
        let seen = running.and_then(|running| running.seen());
        Some(End {
            exit,
            duration: seen.unwrap_or_else(Instant::now) - self.started,
            usage: running.and_then(|running| running.ended()?.1),
            max_rss: running.and_then(|running| running.max_rss()),
            stopped: survivors,
        })
    }

    /// Its input failed: whoever waits is told, once, and it is stopped.
    pub(super) fn fail(&self, error: BoxError) {
        *self.failed() = Some(error);
        self.stop_beside(self.stop, None);
    }

    /// Why its input is not whole.
    pub(super) fn take_failure(&self) -> Option<BoxError> {
        self.failed().take()
    }

    fn failed(&self) -> MutexGuard<'_, Option<BoxError>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
