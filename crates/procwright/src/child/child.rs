//! [`Child`]: a program that was started, held by the caller with its streams.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::copies::{CopyEnd, PreparedCopies};
use super::limits::{Limits, ReachedBound};
use super::processes::Before;
use super::shared_child::{ChildEnd, SharedChild};
use super::start;
use super::stdin_feed::{self, PreparedFeed, StdinSource};
use super::stdio::{JoinEnds, pipe_error};
use super::streams::{Beside, InputListener, StreamListener, StreamQueues, Streams};
use super::supervision::Supervision;
use super::unstarted::Unstarted;
use crate::quote::quote;
use crate::spec::{Purpose, Spec, Stdin};
use crate::spool::{Overflow, elastic};
use crate::std_stream::{PerStream, StdStream};
use crate::stream::{MergedReader, OutputMonitor, PtyMaster, Reader, StallWatch, Writer};
use crate::taps::TapPlan;
use crate::terminal::Size;
use crate::trace::Trace;
use procwright_liveness::{self, Monitor};
use procwright_os::fd;
use procwright_os::fork::OnceBox;
use procwright_os::sync::Mutex;
use procwright_process::holders::{Holders, RunPipe};
use procwright_process::wait::{Awaits, Waitable};
use procwright_process::{Cancel, Exit, Process, ProcessError, Signal, Stop, Survivor};
use procwright_queue::OurEnd;

/// A program that was started, and the ends of its streams.
///
/// [`Command::spawn`](crate::Command::spawn) gives it. Dropping it neither blocks nor
/// kills, and leaves no zombie: the child goes on and is reaped in the background. Its
/// streams are closed if they were not taken out before, so that its next write to them
/// fails.
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
#[doc(alias = "std::process::Child")]
#[doc(alias = "subprocess.Popen")]
#[derive(Debug)]
pub struct Child {
    /// The writer of its stdin, if that is [`Stdin::Pipe`].
    pub stdin: Option<Writer>,
    /// The reader of its stdout, if that is [`Sink::Capture`](crate::Sink::Capture).
    pub stdout: Option<Reader>,
    /// The reader of its stderr, if that is [`Sink::Capture`](crate::Sink::Capture).
    pub stderr: Option<Reader>,
    /// The reader of both in the order in which they come, in place of the two, if that
    /// is [wanted](crate::Command::merged).
    pub merged: Option<MergedReader>,
    argv: Vec<OsString>,
    ok_codes: Vec<i32>,
    shared: Arc<SharedChild>,
    /// Tells that its output is not read.
    watch: Arc<StallWatch>,
    /// The stream in which it says last what is wrong.
    last_words_of: StdStream,
    /// The master of its terminal, if it has one of its own.
    pty_master: Option<Arc<PtyMaster>>,
    pub(super) channel: Mutex<OurEnd>,
    /// The process as it was put into a set, which may look at its descriptor for as long as
    /// this is in there.
    awaited: OnceBox<Process>,
}

/// The time that a program that nobody has any more, or a pipeline, gets to end which has closed
/// one of its outputs: all are closed before the end of a process is known.
pub(crate) const ABOUT_TO_END: Duration = Duration::from_millis(200);

/// Starts the program of `spec`, and leaves it to the caller.
pub(crate) fn spawn(
    spec: &Spec,
    overflow: Option<Overflow>,
    listener: Option<StreamListener>,
    for_input: Option<InputListener>,
    producer: Option<stdin_feed::StdinProducer>,
    taps: TapPlan,
    cancel: Option<Cancel>,
) -> Result<Child, Unstarted> {
    let trace = Trace::begin();
    let valid = spec.validate(Purpose::Spawn { overflow });
    let launch = valid.inspect_err(|error| trace.not_started(&spec.argv, error))?;
    let is_cancelled = || cancel.as_ref().is_some_and(Cancel::is_cancelled);
    // Before a file of the caller's is emptied, and once more before the start.
    if is_cancelled() {
        return Err(start::given_up(Unstarted::Cancelled, spec, trace));
    }
    let input = match (producer, &spec.stdin) {
        (Some(producer), _) => Some(StdinSource::Producer(producer)),
        (None, Stdin::Bytes(bytes)) => Some(StdinSource::Bytes(bytes.clone())),
        _ => None,
    };
    let feeds = input.is_some() || (matches!(spec.stdin, Stdin::Pipe) && spec.pty.is_none());
    let listener = match trace.is_on() {
        true => Some(traced(trace, listener)),
        false => listener,
    };
    // The queues come before the start: a program must not run if they are refused.
    let given_up = |unstarted| start::given_up(unstarted, spec, trace);
    let queues = StreamQueues::new(spec, overflow, listener.as_ref()).map_err(given_up)?;
    let tells_prompts = for_input.is_some();
    let supervision = match Limits::of(spec, cancel.clone(), for_input) {
        Some(limits) => Some(Supervision::prepare(limits).map_err(|error| given_up(error.into()))?),
        None => None,
    };
    let told = supervision.as_ref().map(Supervision::news);
    let copies = PreparedCopies::open(spec, taps, queues.wakes(), told);
    let copies = copies.map_err(|error| given_up(error.into()))?;
    let (channel, theirs) = super::channel::open(spec).map_err(given_up)?;
    let mut prepared = start::prepare(spec, launch, feeds, JoinEnds::default(), theirs, trace)?;
    let ends = prepared.take_ends();
    let mut pipes = ends.pipes();
    let feed = match (&ends.stdin, input) {
        (Some(stdin), Some(input)) => Some(PreparedFeed::new(stdin.as_fd(), input)),
        _ => None,
    };
    let feed = feed.transpose().map_err(|error| given_up(error.into()))?;
    let exit_place = ends
        .terminal
        .as_ref()
        .map(|terminal| terminal.slave.try_clone());
    let exit_place = exit_place
        .transpose()
        .map_err(|error| given_up(pipe_error(error).into()))?;
    if is_cancelled() {
        return Err(given_up(Unstarted::Cancelled));
    }
    let started = Instant::now();
    let running = prepared.start()?;
    // From here on nothing is refused: all that the program needs of us is there.
    let exit = exit_place.zip(running.pidfd());
    let exit = exit.and_then(|(place, pidfd)| fd::replace(place, pidfd).ok());
    let process = running.process();
    let news = supervision.as_ref().map(Supervision::flow_news);
    let streams = queues.connect(
        spec,
        ends,
        exit,
        Beside {
            news: news.as_ref(),
            copies: &copies,
            last_words_of: PerStream::from_fn(|stream| {
                tells_prompts || stream == spec.last_words_of()
            }),
        },
    );
    let refused = |error| {
        // An error is not to be expected of our own pipes. Nothing is left running.
        let _ = process.signal(Signal::KILL);
        Unstarted::from(pipe_error(error))
    };
    let streams = streams.map_err(refused)?;
    let supervision = supervision.map(|one| one.of(&running)).transpose();
    let (supervision, limit_stop) = supervision.map_err(refused)?.unzip();
    let Streams {
        stdin,
        outputs: PerStream { stdout, stderr },
        merged,
        watch,
        pty_master,
        flows,
    } = streams;
    if let Some(master) = &pty_master {
        pipes
            .iter_mut()
            .for_each(|pipe| pipe.kept_by(master.reader()));
    }
    let shared = SharedChild::new(
        running,
        process,
        started,
        pipes,
        spec.stop,
        limit_stop,
        copies.begin(),
    );
    let shared = Arc::new(shared);
    if let Some(supervision) = supervision {
        supervision.begin(&shared, flows, &watch);
    }
    let stdin = match (stdin, feed) {
        (Some(stdin), Some(feed)) => {
            feed.begin(stdin, &shared);
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
        ok_codes: spec.ok_codes.clone(),
        shared,
        watch,
        last_words_of: spec.last_words_of(),
        pty_master,
        channel: Mutex::new(channel),
        awaited: OnceBox::new(),
    })
}

/// A listener that traces the events that `listener` is told.
fn traced(trace: Trace, listener: Option<StreamListener>) -> StreamListener {
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

impl Child {
    /// The program and its arguments.
    pub fn argv(&self) -> &[OsString] {
        &self.argv
    }

    /// The exit codes that mean success, besides 0.
    pub(crate) fn ok_codes(&self) -> &[i32] {
        &self.ok_codes
    }

    /// The program and its arguments in a line, as errors have it: quoted for a shell, and 400
    /// characters at most.
    pub fn command_line(&self) -> String {
        quote(&self.argv)
    }

    /// Its number, which stays its own until it has been waited for.
    #[doc(alias = "id")]
    pub fn pid(&self) -> i32 {
        self.shared.pid()
    }

    /// False in a fork of the process that has started it, which has no part in it: it stops
    /// nobody there, and has none of its streams.
    #[doc(alias = "pthread_atfork")]
    pub fn is_ours(&self) -> bool {
        self.shared.is_ours()
    }

    /// The process, to put into a [`WaitSet`](crate::WaitSet) or to keep. It has a pidfd while
    /// it is not reaped; what was kept since then has one until it is dropped.
    pub fn process(&self) -> Process {
        self.shared.process()
    }

    /// Watches it: [`Monitor::alive`] is one load. The monitor needs nothing of the
    /// child, and tells of the process, whatever programs it runs. Any child can be
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
    pub fn monitor(&self) -> Result<Monitor, procwright_liveness::Error> {
        Monitor::of_process(&self.process())
    }

    /// How it ended, none while it is alive. Does not wait. Reaps it, unless processes of a
    /// group or session that it has led are left: then it stays a zombie, so that its
    /// number leads to them, until it is stopped or dropped.
    #[doc(alias = "poll")]
    #[doc(alias = "WNOHANG")]
    pub fn try_wait(&self) -> Option<Exit> {
        self.shared.try_wait()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// As [`Process::signal`].
    #[doc(alias = "kill")]
    #[doc(alias = "send_signal")]
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        self.process().signal(signal)
    }

    /// Ends it as its [`Stop`] says, reaps it, and returns the processes that could not
    /// be ended. If it has ended by itself meanwhile, the processes that it left behind
    /// are ended: under [`Scope::Tree`](procwright_process::Scope::Tree) those in a group
    /// or session that it has led, and those that hold one of its pipes; under
    /// [`Scope::Group`](procwright_process::Scope::Group) those in its group. Whether
    /// anybody has asked about its end before, or waited for it, makes no difference.
    ///
    /// What none of this tells of goes on: a shell that has ended leaves the server of
    /// `server >log 2>&1 &` so, unless it was started with
    /// [`new_session`](crate::Command::new_session) or in a
    /// [`process_group`](crate::Command::process_group) of its own.
    ///
    /// A fork of the process that has started it leaves it alone: the program is returned.
    ///
    /// # Blocking
    /// For the grace and 2 seconds at most.
    pub fn stop(&self) -> Vec<Survivor> {
        self.stop_with(self.shared.stop)
    }

    /// Ends it as [`stop`](Child::stop) does, by another policy than its own.
    ///
    /// # Blocking
    /// As [`stop`](Child::stop).
    pub fn stop_with(&self, stop: Stop) -> Vec<Survivor> {
        self.shared.stop_beside(stop, None)
    }

    /// Ends it as [`stop_with`](Child::stop_with) does, and meanwhile calls `ready`
    /// whenever `fd` is readable. [`Process::stop_watching`] has an example.
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
        let survivors = self.shared.stop_beside(stop, Some((fd, &mut ring)));
        (survivors, outcome)
    }

    /// Ends it as its [`Stop`] says, on a thread of its own, and holds `kept` until that is
    /// over: its readers, so that its last words fail no write. For a child that nobody has any
    /// more. Where no thread can be had, the program gets the first signal alone.
    ///
    /// False if there is nothing to stop: in a fork, if it has ended, and if its captured outputs
    /// have come to their ends. Who has read that far has seen the end of the program, which may
    /// take a moment longer.
    ///
    /// # Blocking
    /// Where one of two outputs has come to its end and the other has not: the program may be
    /// about to end, and is waited for, 0.2 seconds at most.
    pub fn stop_in_background(&self, kept: impl Send + 'static) -> bool {
        if !self.is_ours() || self.try_wait().is_some() {
            return false;
        }
        let captured = self.output_monitors().values().flatten().count();
        let open = StdStream::BOTH
            .into_iter()
            .filter(|one| self.has_open(*one));
        match open.count() {
            0 if captured > 0 => return false,
            open if open < captured => {
                let ended = self.process().wait(ABOUT_TO_END);
                if matches!(ended, Ok(Some(_))) {
                    return false;
                }
            }
            _ => {}
        }
        let stop = self.shared.stop;
        let shared = Arc::clone(&self.shared);
        let work = move || {
            shared.stop_beside(stop, None);
            drop(kept);
        };
        if procwright_os::thread::spawn_quiet("procwright-stop", work).is_err() {
            let _ = self.process().signal(stop.signal());
        }
        true
    }

    /// Whether more may come of this output to us: false at its end, and if it goes elsewhere.
    pub fn has_open(&self, output: StdStream) -> bool {
        let monitor = self.output_monitors()[output].as_ref();
        monitor.is_some_and(|monitor| !monitor.totals().complete)
    }

    /// Sets the size of its terminal ([`Command::pty`](crate::Command::pty)). If that is
    /// new, the processes in its foreground get `SIGWINCH`.
    ///
    /// # Errors
    /// `Unsupported` if it has no terminal of its own, and in a fork;
    /// `NotConnected` once no process has that any more, or its reader is closed.
    #[doc(alias = "TIOCSWINSZ")]
    pub fn resize(&self, size: Size) -> io::Result<()> {
        self.terminal()?.resize(size)
    }

    /// Types the key that means the end of the input at its terminal
    /// ([`Command::pty`](crate::Command::pty)), as the close of its stdin has done: for a program
    /// that waits for input all the same. Such a one has not taken the first, as one that throws
    /// away what was typed before it reads, or has taken it for one of its inputs and reads
    /// another.
    ///
    /// ```
    /// use procwright::terminal::Size;
    /// use procwright::{Command, Stdin};
    ///
    /// let mut child = Command::shell("cat; cat").pty(Size::default()).stdin(Stdin::Pipe).spawn()?;
    /// // The close types the end of what the first of both reads.
    /// drop(child.stdin.take());
    /// child.type_end()?;
    /// assert_eq!(child.wait(None)?.and_then(|exit| exit.code()), Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`resize`](Child::resize); `WouldBlock` if the terminal has no room for what is typed.
    pub fn type_end(&self) -> io::Result<()> {
        self.terminal()?.type_end()
    }

    fn terminal(&self) -> io::Result<&PtyMaster> {
        let terminal = self.pty_master.as_deref();
        terminal.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "this child has no terminal of its own: start it with a pty",
            )
        })
    }

    /// Whether it has a terminal of its own ([`Command::pty`](crate::Command::pty)), whose
    /// output is its stdout.
    pub fn has_terminal(&self) -> bool {
        self.pty_master.is_some()
    }

    /// The stream in which it says last what is wrong: stderr, or stdout where that has what is
    /// written to stderr, too, as of a [terminal](Child::has_terminal) and with
    /// [`Sink::Merged`](crate::Sink::Merged).
    pub fn last_words_of(&self) -> StdStream {
        self.last_words_of
    }

    /// The end of what came so far of the stream that [has its last words](Child::last_words_of),
    /// some KiB, whether or not anybody has read it: for those who tell of its end. None where
    /// that does not come to us, and of a bare pipe, which its caller alone reads.
    pub fn last_words(&self) -> Option<Vec<u8>> {
        let monitors = self.output_monitors();
        monitors[self.last_words_of].as_ref()?.last_words()
    }

    /// The policy by which it is stopped, unless a call says otherwise.
    pub fn stop_policy(&self) -> Stop {
        self.shared.stop
    }

    /// How it ended and what it used; none before its end.
    pub(crate) fn end(&self) -> Option<ChildEnd> {
        self.shared.end()
    }

    /// Its processes now, its pipes among which `open` are open outputs, and when it was
    /// started, in ticks since boot.
    pub(crate) fn processes(&self, open: PerStream<bool>) -> (Before, Vec<RunPipe>, u64) {
        self.shared.processes(open)
    }

    /// Who holds the outputs that are `open`; none if there are no such outputs.
    pub(crate) fn holders(&self, open: PerStream<bool>) -> Option<PerStream<Option<Holders>>> {
        self.shared.holders(open)
    }

    /// What came of the copies of a stream so far.
    pub(crate) fn copy_ends(&self, stream: StdStream) -> Vec<CopyEnd> {
        self.shared.copy_ends(stream)
    }

    /// What it was stopped for, once that is over; and the limit that it has passed, if it had
    /// ended by itself before it could be stopped for that.
    pub(crate) fn reached_bound(&self) -> Option<ReachedBound> {
        // Before what came of the stop is asked for, which may end at any time.
        if self.has_limit_stop_under_way() {
            return None;
        }
        match self.shared.past_limit_stop() {
            Some(stop) => Some(stop.reached),
            None => self.passed_limit().map(ReachedBound::Bytes),
        }
    }

    /// The limit that an output has passed, of a program that has ended and that nobody has stopped.
    /// What came beyond went nowhere, and the rest must not pass for all of the output.
    fn passed_limit(&self) -> Option<u64> {
        let mut monitors = self.output_monitors().values().flatten();
        let limit = monitors.find_map(OutputMonitor::passed_limit)?;
        let end = self.end()?;
        (end.stopped.is_none() && !end.was_cut_short).then_some(limit)
    }

    /// Whether it is being stopped for a limit.
    pub(crate) fn has_limit_stop_under_way(&self) -> bool {
        self.shared.limit_stop_under_way().is_some()
    }

    pub(super) fn shared(&self) -> &SharedChild {
        &self.shared
    }

    pub(super) fn watch(&self) -> &Arc<StallWatch> {
        &self.watch
    }

    pub(crate) fn output_monitors(&self) -> &PerStream<Option<OutputMonitor>> {
        self.watch.monitors()
    }
}

/// Waits until it has ended.
impl Waitable for Child {
    fn awaits(&self) -> Awaits<'_> {
        self.awaited.get_or_init(|| self.process()).awaits()
    }
}
