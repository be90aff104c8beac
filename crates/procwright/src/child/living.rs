//! A child that the caller holds, with its streams.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::stdio::pipe_error;
use super::streams::{Listener, Queues, Streams};
use super::{Running, Unstarted};
use crate::error::Invalid;
use crate::holders::RunPipe;
use crate::process::{Beside, Exit, Process, ProcessError, Signal, Stop, Survivor, Target};
use crate::spec::{Spec, Stdin};
use crate::spool::Overflow;
use crate::stream::{MergedReader, Outlet, Reader, StallWatch, Writer};
use crate::sys::wait::Usage;
use crate::wait::{Awaits, Waitable};

/// A program that was started, and the ends of its streams.
///
/// What [`Command::spawn`](crate::Command::spawn) gives. Dropping it neither
/// blocks nor kills, and leaves no zombie: the child goes on and is reaped in the
/// background. Its streams are closed if they were not taken out before, so that
/// its next write to them fails.
///
/// ```
/// use procwright::{Command, Stdin};
/// use std::io::{Read, Write};
///
/// let mut child = Command::new("cat").stdin(Stdin::Pipe).spawn()?;
/// let mut stdin = child.stdin.take().unwrap();
/// stdin.write_all(b"hello")?;
/// drop(stdin); // the end of its input
/// let mut text = String::new();
/// child.stdout.take().unwrap().read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// assert!(child.wait(None)?.unwrap().success());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Child {
    /// Where its stdin is written, if that is [`Stdin::Pipe`].
    pub stdin: Option<Writer>,
    /// Where its stdout is read, if that is [`Sink::Capture`](crate::Sink::Capture).
    pub stdout: Option<Reader>,
    /// Where its stderr is read, if that is [`Sink::Capture`](crate::Sink::Capture).
    pub stderr: Option<Reader>,
    /// Where both are read in the order in which they come, in place of the two,
    /// if that is [wanted](crate::Command::merged).
    pub merged: Option<MergedReader>,
    argv: Vec<OsString>,
    process: Process,
    running: Mutex<Running>,
    started: Instant,
    pipes: Vec<RunPipe>,
    stop: Stop,
    /// Those whom the latest stop could not end, once there was one.
    stopped: Mutex<Option<Vec<Survivor>>>,
    /// What tells that nobody reads its output.
    watch: Arc<StallWatch>,
}

/// Starts `spec` and leaves it to the caller.
pub(crate) fn spawn(
    spec: &Spec,
    overflow: Option<Overflow>,
    listener: Option<Listener>,
) -> Result<Child, Unstarted> {
    check(spec)?;
    // Whatever can be refused is asked for before the program starts.
    let queues = Queues::new(spec, overflow, listener.as_ref())?;
    let started = Instant::now();
    let (running, ends) = super::start(spec, matches!(spec.stdin, Stdin::Pipe))?;
    let pipes = ends.pipes();
    match queues.connect(spec, ends) {
        Ok(Streams {
            stdin,
            outputs: [stdout, stderr],
            merged,
            watch,
        }) => Ok(Child {
            stdin,
            stdout,
            stderr,
            merged,
            argv: spec.argv.clone(),
            process: running.process(),
            running: Mutex::new(running.hand_out()),
            started,
            pipes,
            stop: spec.stop,
            stopped: Mutex::new(None),
            watch,
        }),
        // Not to be expected of our own pipes. Nothing is left running.
        Err(error) => {
            let _ = running.process().signal(Signal::KILL);
            Err(pipe_error(error).into())
        }
    }
}

fn check(spec: &Spec) -> Result<(), Invalid> {
    spec.check()?;
    let for_runs = [
        (
            "timeout",
            !spec.timeout.is_never(),
            "pass it to Child::wait",
        ),
        (
            "idle_timeout",
            !spec.idle_timeout.is_never(),
            "pass one to Reader::read_for",
        ),
        ("limit", spec.limit.is_some(), "read as much as you want"),
        ("keep_full", spec.keep_full.is_some(), "write what you read"),
        (
            "stdin",
            matches!(spec.stdin, Stdin::Bytes(_)),
            "use Stdin::Pipe, and write",
        ),
    ];
    for (what, is_set, hint) in for_runs {
        if is_set {
            return Err(Invalid::new(what, "is for run(), not for spawn()", hint));
        }
    }
    Ok(())
}

impl Child {
    /// The program and its arguments.
    pub fn argv(&self) -> &[OsString] {
        &self.argv
    }

    /// Its number, which stays its own until it has been waited for.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// The process, to put into a [`WaitSet`](crate::WaitSet) or to keep.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// How it ended, none while it is alive. Reaps it, and does not wait.
    pub fn try_wait(&self) -> Option<Exit> {
        // Asked first, so that clones of the process know it too.
        let exit = self.process.exit()?;
        let Some(mut running) = self.try_running() else {
            // Somebody stops what it has left behind, and will reap it.
            return Some(exit);
        };
        running.collect();
        running.ended().map(|(exit, _)| exit)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// As [`Process::signal`].
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        self.process.signal(signal)
    }

    /// Ends it as its [`Stop`] says, reaps it, and returns who could not be
    /// ended. What it has left behind is ended too, under
    /// [`Scope::Tree`](crate::process::Scope::Tree), if it has ended by itself
    /// meanwhile.
    ///
    /// Does nothing once it has been waited for: its number, by which its group
    /// goes, may be another's since, and so may be whoever is found by it. To end
    /// what a child leaves behind, stop it instead of waiting.
    ///
    /// # Blocking
    /// For the grace and 2 seconds at most.
    pub fn stop(&self) -> Vec<Survivor> {
        self.stop_with(self.stop)
    }

    /// The same, by another policy than its own.
    ///
    /// # Blocking
    /// As [`stop`](Child::stop).
    pub fn stop_with(&self, stop: Stop) -> Vec<Survivor> {
        self.stop_beside(stop, None)
    }

    /// The same, and meanwhile `ready` is called whenever `fd` is readable: as
    /// [`Process::stop_watching`], where there is an example.
    ///
    /// # Blocking
    /// As [`stop`](Child::stop); an error of `ready` ends the grace.
    pub fn stop_watching<E>(
        &self,
        stop: Stop,
        fd: BorrowedFd<'_>,
        mut ready: impl FnMut() -> Result<(), E>,
    ) -> (Vec<Survivor>, Result<(), E>) {
        let mut outcome = Ok(());
        let mut ring = || {
            let Err(error) = ready() else { return false };
            if outcome.is_ok() {
                outcome = Err(error);
            }
            true
        };
        let survivors = self.stop_beside(stop, Some((fd, &mut ring)));
        (survivors, outcome)
    }

    /// How it is stopped, unless a call says otherwise.
    pub fn stop_policy(&self) -> Stop {
        self.stop
    }

    fn stop_beside(&self, stop: Stop, beside: Option<Beside<'_>>) -> Vec<Survivor> {
        // Held all the while, so that nobody reaps it and frees its number.
        let mut running = self.running();
        if running.ended().is_some() {
            return Vec::new();
        }
        let target = Target {
            root: self.process.known(),
            pipes: self.pipes.clone(),
            adopts: false,
        };
        let survivors = self.process.stop_all(stop, target, beside);
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

    /// What is known of it now that it has ended; none before.
    pub(crate) fn end(&self) -> Option<End> {
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

    pub(super) fn watch(&self) -> &Arc<StallWatch> {
        &self.watch
    }

    pub(crate) fn outlets(&self) -> &[Option<Outlet>; 2] {
        self.watch.outlets()
    }
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

/// Until it has ended.
impl Waitable for Child {
    fn awaits(&self) -> Awaits<'_> {
        self.process.awaits()
    }
}
