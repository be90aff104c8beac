//! A child that the caller holds, with its streams.

use std::ffi::OsString;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::stdio::pipe_error;
use super::{OurEnds, Running, Unstarted};
use crate::drain::{Drain, Pump, Store};
use crate::error::Invalid;
use crate::holders::RunPipe;
use crate::process::{Exit, Process, ProcessError, Signal, Stop, Survivor, Target};
use crate::spec::{Spec, Stdin};
use crate::spool::Overflow;
use crate::spool::elastic::{self, Consumer, Monitor, Producer};
use crate::stream::{Reader, Spool, Writer};
use crate::time::Timeout;
use crate::wait::{Awaits, Event, Waitable};

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
    argv: Vec<OsString>,
    process: Process,
    running: Mutex<Running>,
    pipes: Vec<RunPipe>,
    stop: Stop,
}

/// Starts `spec` and leaves it to the caller.
pub(crate) fn spawn(spec: &Spec, overflow: Option<Overflow>) -> Result<Child, Unstarted> {
    check(spec)?;
    // Whatever can be refused is asked for before the program starts.
    let [stdout, stderr] = spec.captures().map(|read| overflow.filter(|_| read));
    let queues = [queue(stdout)?, queue(stderr)?];
    let (running, ends) = super::start(spec, matches!(spec.stdin, Stdin::Pipe))?;
    let pipes = ends.pipes();
    match streams(ends, queues) {
        Ok((stdin, [stdout, stderr])) => Ok(Child {
            stdin,
            stdout,
            stderr,
            argv: spec.argv.clone(),
            process: running.process(),
            running: Mutex::new(running.hand_out()),
            pipes,
            stop: spec.stop,
        }),
        // Not to be expected of our own pipes. Nothing is left running.
        Err(error) => {
            let _ = running.process().signal(Signal::KILL);
            Err(pipe_error(error).into())
        }
    }
}

/// A queue, and the pump that will fill it.
type Queue = (Pump, Producer, Consumer, Monitor);

fn queue(overflow: Option<Overflow>) -> Result<Option<Queue>, Unstarted> {
    let Some(overflow) = overflow else {
        return Ok(None);
    };
    let pump = Pump::get().map_err(pipe_error)?;
    let hook = Box::new(|_: &elastic::Event| {});
    let (producer, consumer, monitor) = elastic::elastic(overflow, pump.wake(), hook)?;
    Ok(Some((pump, producer, consumer, monitor)))
}

fn streams(
    ends: OurEnds,
    queues: [Option<Queue>; 2],
) -> io::Result<(Option<Writer>, [Option<Reader>; 2])> {
    let stdin = ends.stdin.map(Writer::new).transpose()?;
    let mut readers = [None, None];
    for ((reader, end), queue) in readers.iter_mut().zip(ends.outputs).zip(queues) {
        let Some(end) = end else {
            continue;
        };
        *reader = Some(match queue {
            None => Reader::of_pipe(end.fd, end.probe)?,
            Some((pump, producer, consumer, monitor)) => {
                let store = Store::Elastic(Some(producer));
                let now = Instant::now();
                let drain = Drain::new(end.fd, end.probe, store, Vec::new(), now);
                let gauge = drain.gauge();
                Reader::of_spool(Spool::new(consumer, monitor, pump.take(drain), gauge))
            }
        });
    }
    Ok((stdin, readers))
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
        ("merged", spec.merged, "merge stderr into stdout"),
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
        self.process.exit()?;
        let mut running = self.running();
        running.collect();
        running.ended().map(|(exit, _)| exit)
    }

    /// Waits until it has ended, and reaps it; none if the timeout came first.
    /// Waits for the exit alone: what it wrote can be read afterwards.
    ///
    /// # Errors
    /// As [`Process::wait`].
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Result<Option<Exit>, ProcessError> {
        if let Some(exit) = self.try_wait() {
            return Ok(Some(exit));
        }
        let ended = self.process.wait_for(Event::Exited, timeout)?;
        Ok(ended.map(|exit| self.try_wait().unwrap_or(exit)))
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
    pub fn stop(&self) -> Vec<Survivor> {
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
        let survivors = self.process.stop_all(self.stop, target, None);
        // For clones of the process, before the status is gone.
        let _ = self.process.exit();
        running.collect();
        survivors
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until it has ended.
impl Waitable for Child {
    fn awaits(&self) -> Awaits<'_> {
        self.process.awaits()
    }
}
