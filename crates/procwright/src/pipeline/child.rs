//! [`PipelineChild`]: a pipeline that was started, held by the caller with its streams.

use std::fmt::{self, Write as _};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::builder::Verdict;
use super::driver::{DriverShared, PastPipeline};
use super::error::Error;
use super::report::{PipelineOutput, PipelineReport};
use crate::child::{ABOUT_TO_END, CapturedOutput, Communication, OutputCapture};
use crate::run::Failure;
use crate::stream::{Patience, Reader, StallCheck, StallWatch, Stalled, Writer};
use procwright_explain::WORTH_A_LOOK;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::{Deadline, Seconds, Timeout};
use procwright_os::wake::Wake;
use procwright_process::Process;

/// A pipeline that was started, and the ends of its streams.
///
/// [`Pipeline::spawn`](super::Pipeline::spawn) gives it. Dropping it neither blocks nor kills,
/// as with a [`Child`](crate::Child): the pipeline goes on, its limits hold, and its programs
/// are reaped. Its streams are closed if they were not taken out before, so that the next write
/// to them fails.
///
/// ```
/// use procwright::{Command, Stdin};
/// use std::io::{BufRead, BufReader, Write};
///
/// let first = Command::new("cat").stdin(Stdin::Pipe);
/// let mut child = first.pipe(Command::new("cat")).spawn()?;
/// let mut stdin = child.stdin.take().unwrap();
/// let mut stdout = BufReader::new(child.stdout.take().unwrap());
/// for said in ["pear\n", "apple\n"] {
///     stdin.write_all(said.as_bytes())?;
///     let mut heard = String::new();
///     stdout.read_line(&mut heard)?;
///     assert_eq!(heard, said);
/// }
/// drop(stdin); // the end of its input
/// assert!(child.wait(None)?.unwrap().success());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PipelineChild {
    /// The writer of stdin of the first stage, if that is [`Stdin::Pipe`](crate::Stdin::Pipe).
    pub stdin: Option<Writer>,
    /// The reader of stdout of the last stage, if that is
    /// [`Sink::Capture`](crate::Sink::Capture).
    pub stdout: Option<Reader>,
    /// The reader of stderr of each stage, where that is
    /// [`Sink::Capture`](crate::Sink::Capture).
    pub stderr: Vec<Option<Reader>>,
    pub(super) held: Held,
    /// Tell of each stage whose output is not read.
    pub(super) watches: Vec<Arc<StallWatch>>,
    /// What a `communicate` that an error has ended had come to.
    pub(super) talk: Option<Communication>,
}

/// A pipeline without its streams.
pub(super) struct Held {
    pub(super) shared: Arc<DriverShared>,
    pub(super) command: String,
    pub(super) pids: Vec<i32>,
    pub(super) verdict: Verdict,
}

/// A wait for a pipeline by an event loop: it never blocks. See [`PipelineChild::begin_wait`].
#[derive(Debug)]
pub struct PipelineWait {
    stalls: Vec<StallCheck>,
    rings: Vec<Arc<Wake>>,
}

/// What a [`PipelineWait`] sleeps on: an event loop looks again when one of the descriptors is
/// readable, or at the time.
#[derive(Debug)]
pub struct PipelineSleep<'a> {
    /// Descriptors that are readable when there is something to look at.
    pub readable: Vec<BorrowedFd<'a>>,
    /// When to look again in any case.
    pub until: Deadline,
}

impl fmt::Debug for PipelineChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineChild")
            .field("command", &self.held.command)
            .field("pids", &self.held.pids)
            .finish_non_exhaustive()
    }
}

impl PipelineChild {
    /// The process numbers of the stages. Each stays its stage's own until the pipeline is over.
    pub fn pids(&self) -> &[i32] {
        &self.held.pids
    }

    /// The commands as a shell takes them, with `|` between.
    pub fn command_line(&self) -> &str {
        &self.held.command
    }

    /// The command of each stage as a shell takes it; of a long one the beginning and the end.
    pub fn stage_command_lines(&self) -> impl Iterator<Item = String> {
        self.watches.iter().map(|watch| watch.command())
    }

    /// False in a fork of the process that has started it, which has no part in it.
    #[doc(alias = "pthread_atfork")]
    pub fn is_ours(&self) -> bool {
        self.held.shared.is_ours()
    }

    /// A descriptor that is readable once it is over, for event loops.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.held.shared.over()
    }

    /// What came of it; none while it goes on, and in a fork. Does not wait.
    #[doc(alias = "poll")]
    #[doc(alias = "try_wait")]
    pub fn report(&self) -> Option<&PipelineReport> {
        let past = self.held.shared.past()??;
        self.is_ours().then_some(&past.report)
    }

    /// True while all are being stopped for a limit, a [`Cancel`](procwright_process::Cancel) or a
    /// failure of what stands between two stages, and not since that was asked for here:
    /// [`wait`](PipelineChild::wait) is for the end of that stop, which is a grace and some moments
    /// away at most. It begins before the first signal, so that whoever finds a pipe broken by it
    /// finds this true or the [`report`](PipelineChild::report) there. False in a fork.
    ///
    /// ```
    /// use procwright::{Command, Reason};
    /// use std::time::Duration;
    ///
    /// let sleeps = || Command::new("sleep").arg("60");
    /// let timeout = Duration::from_millis(10);
    /// let child = sleeps().pipe(sleeps()).timeout(timeout).spawn()?;
    /// assert_eq!(child.wait(None)?.unwrap().reason, Reason::Timeout);
    /// assert!(!child.is_stopping());
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    pub fn is_stopping(&self) -> bool {
        self.is_ours() && self.held.shared.is_stopping()
    }

    /// Waits until it is over, as one that is [run](super::Pipeline::run) would be, and gives
    /// what came of it; none if the timeout came first. What its readers have not read can be
    /// read afterwards.
    ///
    /// # Blocking
    /// Until then. Sleeps all the while.
    ///
    /// # Errors
    /// [`Error::Stalled`] if a stage cannot go on because no read of what it wrote has begun, for
    /// as long as its [`stall_after`](crate::Command::stall_after) says; [`Error::Forked`],
    /// [`Error::Lost`].
    #[doc(alias = "waitpid")]
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Result<Option<&PipelineReport>, Error> {
        self.wait_with(Patience::from(timeout))
    }

    /// Waits as [`wait`](PipelineChild::wait) does, with a patience that something else may end.
    ///
    /// # Blocking
    /// As [`wait`](PipelineChild::wait).
    ///
    /// # Errors
    /// As there; [`Error::Interrupted`] when the patience says so.
    pub fn wait_with(&self, patience: Patience<'_>) -> Result<Option<&PipelineReport>, Error> {
        let past = self.await_past(patience)?;
        Ok(past.map(|past| &past.report))
    }

    fn await_past(&self, patience: Patience<'_>) -> Result<Option<&PastPipeline>, Error> {
        let mut wait = self.begin_wait(false);
        loop {
            if let Some(past) = self.held.past()? {
                return Ok(Some(past));
            }
            if patience.deadline().reached(Instant::now()) {
                return Ok(None);
            }
            let next = self.wait_sleep(&mut wait)?;
            let until = patience.deadline().min(next.until);
            if sleep(patience.interrupt(), next.readable, until) {
                let now = Instant::now();
                let stalls = wait.stalls.into_iter();
                stalls.for_each(|stall| stall.interrupted(now));
                return Err(Error::Interrupted {
                    command: self.held.command.clone(),
                });
            }
        }
    }

    /// Begins a wait that an event loop takes step by step, for the end, or if it is `writing`,
    /// for room in stdin: it asks for the
    /// [`report`](PipelineChild::report), sleeps on what
    /// [`wait_sleep`](PipelineChild::wait_sleep) says, and asks again.
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let child = Command::new("true").pipe(Command::new("true")).spawn()?;
    /// let mut wait = child.begin_wait(false);
    /// while child.report().is_none() {
    ///     let sleep = child.wait_sleep(&mut wait)?;
    ///     // Here the event loop polls `sleep.readable`, until `sleep.until`.
    /// #   std::thread::yield_now();
    /// #   assert!(!sleep.readable.is_empty());
    /// }
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    pub fn begin_wait(&self, writing: bool) -> PipelineWait {
        let began = Instant::now();
        let begin = match writing {
            true => StallCheck::writing,
            false => StallCheck::waiting,
        };
        PipelineWait {
            stalls: self.watches.iter().map(|one| begin(one, began)).collect(),
            rings: Vec::new(),
        }
    }

    /// What to sleep on before the next look at the [`report`](PipelineChild::report).
    ///
    /// # Errors
    /// The stall, as [`wait`](PipelineChild::wait) has it.
    pub fn wait_sleep<'a>(
        &'a self,
        wait: &'a mut PipelineWait,
    ) -> Result<PipelineSleep<'a>, Stalled> {
        let now = Instant::now();
        let mut until = Deadline::NEVER;
        wait.rings.clear();
        for stall in &mut wait.stalls {
            let next = stall.check(now)?;
            until = until.min(next.at);
            wait.rings.extend(next.ring);
        }
        let rings = wait.rings.iter().map(|ring| ring.as_fd());
        Ok(PipelineSleep {
            readable: std::iter::once(self.held.shared.over())
                .chain(rings)
                .collect(),
            until,
        })
    }

    /// The text for a wait that has come to its time: which stages have not ended, and after a
    /// second and more, what each of these waits for.
    ///
    /// ```
    /// use procwright::Command;
    /// use std::time::Duration;
    ///
    /// let child = Command::new("true").pipe(Command::new("sleep").arg("60")).spawn()?;
    /// let patience = Duration::from_millis(10);
    /// assert!(child.wait(patience)?.is_none());
    /// let text = child.explain_timeout(patience);
    /// assert!(text.starts_with("true | sleep 60 did not end within 0.01 s"), "{text}");
    /// assert!(text.contains("stage 2 of 2 has not ended: sleep 60 (pid "), "{text}");
    /// child.kill()?;
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    ///
    /// # Blocking
    /// After a second and more, while all processes of the machine are looked at.
    pub fn explain_timeout(&self, waited: impl Into<Timeout>) -> String {
        let waited = waited.into().duration();
        let mut text = format!("{} did not end", self.held.command);
        if let Some(waited) = waited {
            let _ = write!(text, " within {}", Seconds(waited));
        }
        let pids = self.pids();
        for place in self.live_stages() {
            let (pid, of) = (pids[place], pids.len());
            let command = self.watches[place].command();
            let _ = write!(
                text,
                "\n  stage {} of {of} has not ended: {command} (pid {pid})",
                place + 1
            );
            let waiting = waited
                .filter(|waited| *waited >= WORTH_A_LOOK)
                .and_then(|_| procwright_explain::waiting_for(pid).ok());
            if let Some(why) = waiting.as_ref().and_then(|waiting| waiting.why()) {
                let _ = write!(text, "\n    why: {why}");
            }
        }
        text
    }

    /// Has all stages stopped, each as its [`Stop`](procwright_process::Stop) says, the last one
    /// first, and returns when that is over, with what came of it. Nothing is done to one that
    /// is over.
    ///
    /// # Blocking
    /// For the grace and about 2 seconds at most.
    ///
    /// # Errors
    /// [`Error::Forked`] in a fork, which leaves it alone; [`Error::Lost`].
    pub fn stop(&self) -> Result<&PipelineReport, Error> {
        self.held.end(false)
    }

    /// Stops it as [`stop`](PipelineChild::stop) does, without a grace.
    ///
    /// # Blocking
    /// About 2 seconds at most.
    ///
    /// # Errors
    /// As [`stop`](PipelineChild::stop).
    pub fn kill(&self) -> Result<&PipelineReport, Error> {
        self.held.end(true)
    }

    /// Begins what [`stop`](PipelineChild::stop) does, or with `at_once` what
    /// [`kill`](PipelineChild::kill) does, and returns at once. Nothing is done in a fork.
    pub fn begin_stop(&self, at_once: bool) {
        self.held.shared.demand_end(at_once);
    }

    /// Begins to stop it as [`begin_stop`](PipelineChild::begin_stop) does, for whoever had it
    /// last: a child's [`stop_in_background`](crate::Child::stop_in_background), by which it
    /// goes. What becomes of it is looked after by its own thread, and its outputs are taken for
    /// as long as their readers are open.
    ///
    /// False if there is nothing to stop: in a fork, if it is over, and if its captured outputs
    /// have all come to their ends.
    ///
    /// # Blocking
    /// Where one of several outputs has come to its end and another has not: the pipeline may be
    /// about to end, and is waited for, 0.2 seconds at most.
    pub fn stop_in_background(&self) -> bool {
        if !self.is_ours() || self.held.shared.past().is_some() {
            return false;
        }
        let monitors = self.watches.iter().map(|watch| watch.monitors());
        let monitors = monitors.flat_map(|both| both.values().flatten());
        let has_ended: Vec<bool> = monitors.map(|one| one.totals().complete).collect();
        if has_ended.contains(&true) {
            if !has_ended.contains(&false) {
                return false;
            }
            let until = Timeout::after(ABOUT_TO_END).starting(Instant::now());
            sleep(None, [self.held.shared.over()], until);
            if self.held.shared.past().is_some() {
                return false;
            }
        }
        self.begin_stop(false);
        true
    }

    /// Why it has not gone on for so long: what the last stage that has not ended waits for. None
    /// after less than a second, for which nobody looks, and where it waits for nobody else.
    ///
    /// # Blocking
    /// While all processes of the machine are looked at.
    pub fn why_after(&self, waited: impl Into<Timeout>) -> Option<String> {
        let waited = waited.into().duration()?;
        let last = (waited >= WORTH_A_LOOK).then(|| self.live_stages().last())?;
        let waiting = procwright_explain::waiting_for(self.pids()[last?]).ok()?;
        waiting.why().map(str::to_owned)
    }

    /// What to put behind the error of who has waited in vain for a line of it: a line that begins
    /// with `\n` and says [why it has not gone on](PipelineChild::why_after), or nothing.
    ///
    /// # Blocking
    /// While all processes of the machine are looked at.
    pub fn explain_silence(&self, waited: impl Into<Timeout>) -> String {
        let why = self.why_after(waited);
        why.map_or_else(String::new, |why| format!("\n  why: {why}"))
    }

    /// The places of the stages whose programs have not ended.
    fn live_stages(&self) -> impl Iterator<Item = usize> {
        // A number stays its stage's own until all is over.
        let lives = |pid: i32| Process::open(pid).is_ok_and(|one| one.is_alive());
        let pids = self.pids().iter().enumerate();
        pids.filter_map(move |(place, pid)| lives(*pid).then_some(place))
    }

    /// The end of what a stage, which counts from 0, wrote to stderr, read or not: none while the
    /// pipeline goes on, and if that did not come to this process.
    pub fn last_words(&self, stage: usize) -> Option<&[u8]> {
        let past = self.held.shared.past()??;
        past.last_words.get(stage)?.as_deref()
    }

    /// The failure that ended it, if one did, and the stage that it belongs to: once, for a host
    /// that does not [`communicate`](PipelineChild::communicate).
    pub fn take_failure(&self) -> Option<(Option<usize>, Failure)> {
        let past = self.held.shared.past()??;
        past.failure.lock().take()
    }

    /// Writes `input` to `stdin` and reads `outputs`, all at once. These are this pipeline's,
    /// taken out before, in whatever order; one that is none is read elsewhere, if at all.
    pub fn communicate_with<O: OutputCapture>(
        &self,
        stdin: Option<Writer>,
        input: impl Into<Bytes>,
        outputs: impl IntoIterator<Item = Option<O>>,
    ) -> Communication<O> {
        Communication::new(stdin, input.into(), outputs, self.watches.clone())
    }

    /// Stops it as [`stop`](PipelineChild::stop) does, or with `at_once` as
    /// [`kill`](PipelineChild::kill) does, and waits for as long as the patience lasts; none if
    /// that is over first, and the stop goes on.
    ///
    /// # Blocking
    /// As there.
    ///
    /// # Errors
    /// As there; [`Error::Interrupted`] when the patience says so.
    pub fn stop_with(
        &self,
        at_once: bool,
        patience: Patience<'_>,
    ) -> Result<Option<&PipelineReport>, Error> {
        self.begin_stop(at_once);
        loop {
            if let Some(past) = self.held.past()? {
                return Ok(Some(&past.report));
            }
            if patience.deadline().reached(Instant::now()) {
                return Ok(None);
            }
            let over = [self.held.shared.over()];
            if sleep(patience.interrupt(), over, patience.deadline()) {
                return Err(Error::Interrupted {
                    command: self.held.command.clone(),
                });
            }
        }
    }

    /// Writes `input` to stdin, if that is held here, closes it, reads all outputs that were not
    /// taken out to their ends, all at once, and waits until the pipeline is over. The result is
    /// that of [`run`](super::Pipeline::run), with the same errors; an output that was taken out
    /// is empty in it, and so is stderr of such a stage but for its end.
    ///
    /// After an [`Error::Stalled`] or [`Error::Stream`] all goes on, and nothing is lost: the next
    /// call takes it up, and writes its `input` behind what is left, if any is. Or [`stop`] the pipeline.
    ///
    /// # Blocking
    /// Until then.
    ///
    /// # Errors
    /// Those of [`run`](super::Pipeline::run) and of [`wait`](PipelineChild::wait);
    /// [`Error::Stream`] where the system refuses a read, a write or a descriptor to wait by.
    ///
    /// [`stop`]: PipelineChild::stop
    #[doc(alias = "subprocess.Popen.communicate")]
    #[doc(alias = "wait_with_output")]
    pub fn communicate(&mut self, input: impl Into<Bytes>) -> Result<PipelineOutput, Error> {
        self.held.past()?;
        let mut talk = self.talk.take().unwrap_or_else(|| {
            let outputs = std::iter::once(&mut self.stdout).chain(&mut self.stderr);
            let outputs: Vec<Option<CapturedOutput>> = outputs
                .map(|reader| reader.take().map(CapturedOutput::new))
                .collect();
            let stdin = self.stdin.take();
            self.communicate_with(stdin, Bytes::new(), outputs)
        });
        talk.add(input.into());
        let past = match self.talk_to_the_end(&mut talk) {
            Ok(past) => past,
            Err(error) => {
                self.talk = Some(talk);
                return Err(error);
            }
        };
        let read = |output: Option<CapturedOutput>| output.map(CapturedOutput::into_data);
        let mut outputs = talk.into_captures().map(read);
        let stdout = outputs.next().flatten().unwrap_or_default();
        let read = outputs.zip(&past.last_words);
        let stderr = read.map(|(read, words)| read.or_else(|| words.clone()).unwrap_or_default());
        let stages = past.report.stages.iter();
        let of_fan = stages.filter(|stage| stage.fan.is_some());
        let output = PipelineOutput {
            report: past.report.clone(),
            stdout,
            // Of a fan that is spawned the last alone is captured.
            beside: vec![Vec::new(); of_fan.count().saturating_sub(1)],
            stderr: stderr.collect(),
        };
        let failure = past.failure.lock().take();
        self.held.verdict.of(output, failure)
    }

    fn talk_to_the_end(&self, talk: &mut Communication) -> Result<&PastPipeline, Error> {
        talk.proceed(None)
            .map_err(|error| self.held.failed_read(error))?;
        loop {
            if let Some(past) = self.await_past(Patience::NEVER_ENDING)? {
                return Ok(past);
            }
        }
    }
}

impl Held {
    /// What came of it, none while it goes on.
    fn past(&self) -> Result<Option<&PastPipeline>, Error> {
        if !self.shared.is_ours() {
            return Err(Error::Forked {
                command: self.command.clone(),
            });
        }
        let lost = || Error::Lost {
            command: self.command.clone(),
        };
        let past = self.shared.past();
        past.map(|past| past.ok_or_else(lost)).transpose()
    }

    /// Has all stages stopped, and waits for that.
    pub(super) fn end(&self, at_once: bool) -> Result<&PipelineReport, Error> {
        self.shared.demand_end(at_once);
        loop {
            if let Some(past) = self.past()? {
                return Ok(&past.report);
            }
            sleep(None, [self.shared.over()], Deadline::NEVER);
        }
    }

    /// The error of a stream that cannot be read or written.
    fn failed_read(&self, error: io::Error) -> Error {
        match error.downcast::<crate::stream::Stalled>() {
            Ok(stalled) => Error::Stalled(stalled),
            Err(source) => Error::Stream {
                command: self.command.clone(),
                source,
            },
        }
    }
}

/// Sleeps until one of these is readable or the deadline has come. True if it is the interrupt.
fn sleep<'a>(
    interrupt: Option<BorrowedFd<'a>>,
    fds: impl IntoIterator<Item = BorrowedFd<'a>>,
    until: Deadline,
) -> bool {
    let fds = interrupt.into_iter().chain(fds);
    let mut fds: Vec<_> = fds.map(|fd| Fd::from_borrowed_fd(fd, Flags::IN)).collect();
    // A failed wait is a reason to look, and no more.
    let polled = poll::poll(&mut fds, until);
    polled.is_ok() && interrupt.is_some() && !fds[0].revents().is_empty()
}
