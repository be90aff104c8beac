//! A child that the caller holds, with its streams.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
#[cfg(not(procwright_loom))]
use std::sync::Mutex;
use std::time::Instant;

use super::Unstarted;
use super::core::{Core, End};
use super::feed::{self, Input};
use super::stdio::pipe_error;
use super::streams::{Listener, Queues, Streams};
use crate::error::Invalid;
use crate::liveness::{self, Monitor};
use crate::process::{Exit, Process, ProcessError, Signal, Stop, Survivor};
#[cfg(not(procwright_loom))]
use crate::queue::OurEnd;
use crate::spec::{Spec, Stdin};
use crate::spool::{Overflow, elastic};
use crate::stream::{Line, MergedReader, Outlet, Reader, StallWatch, Writer};
use crate::terminal::Size;
use crate::trace::Trace;
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
    core: Arc<Core>,
    /// What tells that nobody reads its output.
    watch: Arc<StallWatch>,
    /// To its terminal, if it has one of its own.
    line: Option<Arc<Line>>,
    #[cfg(not(procwright_loom))]
    pub(super) channel: Mutex<OurEnd>,
}

/// Starts `spec` and leaves it to the caller.
pub(crate) fn spawn(
    spec: &Spec,
    overflow: Option<Overflow>,
    listener: Option<Listener>,
    producer: Option<feed::Producer>,
) -> Result<Child, Unstarted> {
    check(spec, overflow)?;
    let input = match (producer, &spec.stdin) {
        (Some(producer), _) => Some(Input::Producer(producer)),
        (None, Stdin::Bytes(bytes)) => Some(Input::Bytes(bytes.clone())),
        _ => None,
    };
    let feeds = input.is_some() || (matches!(spec.stdin, Stdin::Pipe) && spec.pty.is_none());
    let trace = Trace::begin();
    let listener = match trace.is_on() {
        true => Some(traced(trace, listener)),
        false => listener,
    };
    // Whatever can be refused is asked for before the program starts.
    let queues = Queues::new(spec, overflow, listener.as_ref())?;
    #[cfg(not(procwright_loom))]
    let (channel, theirs) = super::channel::open(spec)?;
    #[cfg(procwright_loom)]
    let theirs = None;
    let started = Instant::now();
    let (running, ends) = super::start(spec, feeds, theirs, trace, || {})?;
    let pipes = ends.pipes();
    let process = running.process();
    let kill = |error| {
        // Not to be expected of our own pipes. Nothing is left running.
        let _ = process.signal(Signal::KILL);
        Unstarted::from(pipe_error(error))
    };
    let exit = running.pidfd().and_then(|fd| fd.try_clone_to_owned().ok());
    let streams = queues.connect(spec, ends, exit).map_err(kill)?;
    let Streams {
        stdin,
        outputs: [stdout, stderr],
        merged,
        watch,
        line,
    } = streams;
    let core = Arc::new(Core::new(running, started, pipes, spec.stop));
    let stdin = match (stdin, input) {
        (Some(stdin), Some(input)) => {
            feed::start(stdin, input, &core).map_err(kill)?;
            None
        }
        (stdin, _) => stdin,
    };
    Ok(Child {
        stdin,
        stdout,
        stderr,
        merged,
        argv: spec.argv.clone(),
        core,
        watch,
        line,
        #[cfg(not(procwright_loom))]
        channel: Mutex::new(channel),
    })
}

/// A listener that traces what `listener` is told.
fn traced(trace: Trace, listener: Option<Listener>) -> Listener {
    Arc::new(move |stream, event| {
        trace.say(|| match event {
            elastic::Event::Spilling { directory } => {
                format!("spilling {stream} to {}", directory.display())
            }
            elastic::Event::Degraded { what, error } => {
                format!("{stream} cannot go to disk: cannot {what}: {error}")
            }
            elastic::Event::Dropping { offset } => {
                format!("dropping of {stream} from offset {offset} on")
            }
            elastic::Event::Overflowed { offset } => {
                format!("{stream} was too much at offset {offset}")
            }
        });
        if let Some(listener) = &listener {
            listener(stream, event);
        }
    })
}

fn check(spec: &Spec, overflow: Option<Overflow>) -> Result<(), Invalid> {
    spec.check()?;
    if spec.pty.is_some() && overflow.is_none() {
        return Err(Invalid::new(
            "overflow",
            "is the bare pipe, and a pty is none",
            "use Overflow::Block, then the program waits once that much is unread",
        ));
    }
    if spec.pty.is_some() && matches!(spec.stdin, Stdin::Inherit) {
        return Err(Invalid::new(
            "stdin",
            "is inherited, and nobody would pass on what is typed there",
            "use Stdin::Pipe and write what is to be typed, or use run()",
        ));
    }
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
        self.core.process.pid()
    }

    /// The process, to put into a [`WaitSet`](crate::WaitSet) or to keep.
    pub fn process(&self) -> &Process {
        &self.core.process
    }

    /// Watches it: [`Monitor::alive`] is one load. It needs nothing of the child,
    /// and tells of the process, whatever programs it runs. Any child can be
    /// watched; [`Command::liveness`](crate::Command::liveness) is for the other
    /// direction.
    ///
    /// ```
    /// use procwright::{Command, Stdin};
    ///
    /// let mut child = Command::new("cat").stdin(Stdin::Pipe).spawn()?;
    /// let monitor = child.monitor()?;
    /// assert!(monitor.alive());
    /// drop(child.stdin.take()); // the end of its input
    /// monitor.wait(None);
    /// assert!(!monitor.alive());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub fn monitor(&self) -> Result<Monitor, liveness::Error> {
        Monitor::of_process(&self.core.process)
    }

    /// How it ended, none while it is alive. Reaps it, and does not wait.
    pub fn try_wait(&self) -> Option<Exit> {
        self.core.try_wait()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// As [`Process::signal`].
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        self.core.process.signal(signal)
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
        self.stop_with(self.core.stop)
    }

    /// The same, by another policy than its own.
    ///
    /// # Blocking
    /// As [`stop`](Child::stop).
    pub fn stop_with(&self, stop: Stop) -> Vec<Survivor> {
        self.core.stop_beside(stop, None)
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
        let survivors = self.core.stop_beside(stop, Some((fd, &mut ring)));
        (survivors, outcome)
    }

    /// Says how large its terminal is ([`Command::pty`](crate::Command::pty)). If
    /// that is new, whoever is in its foreground gets `SIGWINCH`.
    ///
    /// # Errors
    /// `Unsupported` if it has no terminal of its own, and in a fork;
    /// `NotConnected` once nobody has that any more, or its reader is closed.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        match &self.line {
            Some(line) => line.resize(size),
            None => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this child has no terminal of its own: start it with a pty",
            )),
        }
    }

    /// How it is stopped, unless a call says otherwise.
    pub fn stop_policy(&self) -> Stop {
        self.core.stop
    }

    /// What is known of it now that it has ended; none before.
    pub(crate) fn end(&self) -> Option<End> {
        self.core.end()
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn watch(&self) -> &Arc<StallWatch> {
        &self.watch
    }

    pub(crate) fn outlets(&self) -> &[Option<Outlet>; 2] {
        self.watch.outlets()
    }
}

/// Until it has ended.
impl Waitable for Child {
    fn awaits(&self) -> Awaits<'_> {
        self.core.process.awaits()
    }
}
