//! [`PipelineChild`]: a pipeline that was started, held by the caller with its streams.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::builder::Verdict;
use super::driver::{DriverShared, PastPipeline};
use super::error::Error;
use super::report::{PipelineOutput, PipelineReport};
use super::talk::Talk;
use crate::stream::{Patience, Reader, StallCheck, StallWatch, Writer};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::{Deadline, Timeout};

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
    pub(super) talk: Option<Talk>,
}

/// A pipeline without its streams.
pub(super) struct Held {
    pub(super) shared: Arc<DriverShared>,
    pub(super) command: String,
    pub(super) pids: Vec<i32>,
    pub(super) verdict: Verdict,
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

    /// False in a fork of the process that has started it, which has no part in it.
    #[doc(alias = "pthread_atfork")]
    pub fn is_ours(&self) -> bool {
        self.held.shared.is_ours()
    }

    /// What came of it; none while it goes on, and in a fork. Does not wait.
    #[doc(alias = "poll")]
    #[doc(alias = "try_wait")]
    pub fn report(&self) -> Option<&PipelineReport> {
        let past = self.held.shared.past()??;
        self.is_ours().then_some(&past.report)
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
        let began = Instant::now();
        let stalls = self.watches.iter();
        let mut stalls: Vec<StallCheck> = stalls
            .map(|watch| StallCheck::waiting(watch, began))
            .collect();
        loop {
            if let Some(past) = self.held.past()? {
                return Ok(Some(past));
            }
            let now = Instant::now();
            if patience.deadline().reached(now) {
                return Ok(None);
            }
            let mut until = patience.deadline();
            let mut rings = Vec::new();
            for stall in &mut stalls {
                let next = stall.check(now)?;
                until = until.min(next.at);
                rings.extend(next.ring);
            }
            let rings = rings.iter().map(|ring| ring.as_fd());
            let fds = std::iter::once(self.held.shared.over()).chain(rings);
            if sleep(patience.interrupt(), fds, until) {
                let now = Instant::now();
                stalls.into_iter().for_each(|stall| stall.interrupted(now));
                return Err(Error::Interrupted {
                    command: self.held.command.clone(),
                });
            }
        }
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
            let outputs = outputs.map(Option::take);
            Talk::new(self.stdin.take(), outputs, self.watches.clone())
        });
        talk.add(input.into());
        let past = match self.talk_to_the_end(&mut talk) {
            Ok(past) => past,
            Err(error) => {
                self.talk = Some(talk);
                return Err(error);
            }
        };
        let mut outputs = talk.into_outputs().into_iter();
        let stdout = outputs.next().flatten().unwrap_or_default();
        let read = outputs.zip(&past.last_words);
        let stderr = read.map(|(read, words)| read.or_else(|| words.clone()).unwrap_or_default());
        let output = PipelineOutput {
            report: past.report.clone(),
            stdout,
            stderr: stderr.collect(),
        };
        let failure = past.failure.lock().take();
        self.held.verdict.of(output, failure)
    }

    fn talk_to_the_end(&self, talk: &mut Talk) -> Result<&PastPipeline, Error> {
        talk.proceed()
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
