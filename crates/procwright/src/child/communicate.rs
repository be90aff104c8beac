//! Talking to a child, or to a pipeline, in one go: all of its input, and all of its output.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes};

use super::captured_output::{CapturedOutput, OutputCapture};
use super::child::Child;
use crate::stream::{Closed, Patience, Readiness, StallCheck, StallWatch, Writer};
use procwright_os::fork::OnceBox;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// Feeds a child its input and collects its outputs, stdout and then stderr: what
/// [`Child::communicate`] gives. That of a pipeline
/// ([`communicate_with`](crate::pipeline::PipelineChild::communicate_with)) has stdout of the
/// last stage and then stderr of each.
///
/// The streams of the child belong to it, and the bytes that were read of them: a
/// timeout or an interrupt loses nothing, [`proceed`](Communication::proceed) goes on where it
/// was. Dropped, it closes them.
///
/// A front end whose language has memory of its own reads into that, by an
/// [`OutputCapture`]: see [`Child::communicate_with`].
#[derive(Debug)]
pub struct Communication<O = CapturedOutput> {
    stdin: Option<Writer>,
    input: Bytes,
    outputs: Vec<CommunicationOutput<O>>,
    /// Tell of an output that is not read here and holds up those that are.
    watches: Vec<Arc<StallWatch>>,
}

/// One of the outputs, and how far it was read.
#[derive(Debug)]
struct CommunicationOutput<O> {
    output: Option<O>,
    progress: OutputProgress,
    /// Its readiness, from the first sleep until its end.
    polled: OnceBox<Readiness>,
}

/// How far an output was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputProgress {
    /// More may come.
    Open,
    /// The end was read, or there is nothing to read from.
    Ended,
    /// Another thread has closed it before its end, and that was told.
    Closed,
}

impl Child {
    /// Takes the streams that were not taken out yet, to write `input` to stdin
    /// and read both outputs, all at once: with no thread, and whichever
    /// [`Overflow`](crate::Overflow) there is, the bare pipe among them. Nothing
    /// is moved before [`Communication::proceed`].
    ///
    /// ```
    /// use procwright::{Command, Stdin};
    /// use std::time::Duration;
    ///
    /// let mut child = Command::new("cat").stdin(Stdin::Pipe).spawn_with(None)?;
    /// let input = vec![b'x'; 1 << 20]; // more than the pipes hold
    /// let mut talk = child.communicate(input);
    /// while let Err(error) = talk.proceed(Duration::from_millis(1)) {
    ///     assert_eq!(error.kind(), std::io::ErrorKind::TimedOut); // and on it goes
    /// }
    /// let outputs = talk.into_outputs();
    /// assert_eq!((outputs[0].len(), outputs[1].len()), (1 << 20, 0));
    /// assert!(child.wait(None)?.unwrap().success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "subprocess.Popen.communicate")]
    #[doc(alias = "wait_with_output")]
    pub fn communicate(&mut self, input: impl Into<Bytes>) -> Communication {
        let stdin = self.stdin.take();
        let outputs = [self.stdout.take(), self.stderr.take()];
        self.communicate_with(
            stdin,
            input,
            outputs.map(|one| one.map(CapturedOutput::new)),
        )
    }

    /// Writes `input` to `stdin` and reads `outputs`, stdout and stderr, all at once. These are
    /// the child's, taken out before; an output that is none here is read elsewhere, if at all.
    pub fn communicate_with<O: OutputCapture>(
        &self,
        stdin: Option<Writer>,
        input: impl Into<Bytes>,
        outputs: impl IntoIterator<Item = Option<O>>,
    ) -> Communication<O> {
        let watches = vec![Arc::clone(self.watch())];
        Communication::new(stdin, input.into(), outputs, watches)
    }
}

impl<O: OutputCapture> Communication<O> {
    pub(crate) fn new(
        stdin: Option<Writer>,
        input: Bytes,
        outputs: impl IntoIterator<Item = Option<O>>,
        watches: Vec<Arc<StallWatch>>,
    ) -> Communication<O> {
        let side = |output: Option<O>| CommunicationOutput {
            progress: match output {
                Some(_) => OutputProgress::Open,
                None => OutputProgress::Ended,
            },
            output,
            polled: OnceBox::new(),
        };
        Communication {
            stdin,
            input,
            outputs: outputs.into_iter().map(side).collect(),
            watches,
        }
    }

    /// Has this written as well, behind what is left. Nothing where stdin is closed.
    pub(crate) fn add(&mut self, input: Bytes) {
        self.input = match self.input.is_empty() {
            true => input,
            false => [&self.input[..], &input].concat().into(),
        };
    }

    /// Goes on until all is written and all outputs are at their end, which is
    /// when all processes have closed them, those that the child has left behind
    /// included. Closes stdin once all is written; that the child does not read
    /// all of it is no error. How the child ends is not waited for: do that afterwards.
    ///
    /// # Blocking
    /// Until then, or as long as the patience says.
    ///
    /// # Errors
    /// `TimedOut` and `Interrupted` when the patience ends: call it again.
    /// [`Closed`](crate::stream::Closed) if another thread has closed a stream, once for
    /// each: the others can still be gone on with. [`Stalled`](crate::stream::Stalled)
    /// if the child waits for an output to be read that is not read here: it was taken
    /// out before. All other errors are those of a read or write of these streams.
    /// The bytes that were read before stay here in any case.
    pub fn proceed<'a>(&mut self, patience: impl Into<Patience<'a>>) -> io::Result<()> {
        let patience = patience.into();
        let mut stalls: Option<Vec<StallCheck>> = None;
        loop {
            // First what is there, so that a patience that is over before it
            // began still brings what needs no wait.
            let at_once = Patience::until(Deadline::at(Instant::now()));
            let mut moved = self.write(at_once)?;
            for output in &mut self.outputs {
                moved |= output.read(at_once)?;
            }
            if self.is_done() {
                return Ok(());
            }
            if moved {
                stalls = None;
                // A flood never sleeps, and must hide neither an interrupt nor the time.
                patience.check()?;
                continue;
            }
            let now = Instant::now();
            if patience.deadline().reached(now) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let checks = stalls.get_or_insert_with(|| {
                let begin = match self.stdin {
                    Some(_) => StallCheck::writing,
                    None => StallCheck::waiting,
                };
                self.watches.iter().map(|one| begin(one, now)).collect()
            });
            let mut until = patience.deadline();
            let mut rings = Vec::new();
            for check in checks {
                let next = check.check(now).map_err(io::Error::other)?;
                until = until.min(next.at);
                rings.extend(next.ring);
            }
            if let Err(error) = self.sleep(until, &rings, patience.interrupt()) {
                if error.kind() == io::ErrorKind::Interrupted {
                    let now = Instant::now();
                    let checks = stalls.into_iter().flatten();
                    checks.for_each(|check| check.interrupted(now));
                }
                return Err(error);
            }
        }
    }

    /// Whether there is nothing more to be done.
    pub fn is_done(&self) -> bool {
        self.stdin.is_none() && self.outputs.iter().all(|output| !output.is_open())
    }

    /// Whether input is left to be written, or stdin to be closed behind it.
    pub fn is_writing(&self) -> bool {
        self.stdin.is_some()
    }

    /// The captures of the outputs, none for one that is at its end.
    pub fn open_captures(&self) -> impl Iterator<Item = Option<&O>> {
        let outputs = self.outputs.iter();
        outputs.map(|side| side.output.as_ref().filter(|_| side.is_open()))
    }

    /// The readiness of each output that is not at its end, the error if that cannot be had.
    pub fn open_readiness(&self) -> impl Iterator<Item = Option<io::Result<Readiness>>> {
        self.outputs.iter().map(CommunicationOutput::readiness)
    }

    /// An output of which [`proceed`](Communication::proceed) has said that another
    /// thread closed it before its end.
    pub fn closed_output(&self) -> Option<&O> {
        let closed = |side: &&CommunicationOutput<O>| side.progress == OutputProgress::Closed;
        self.outputs.iter().find(closed)?.output.as_ref()
    }

    /// How many bytes of the input are not written, and will not be if it is done:
    /// the child has not read them.
    pub fn unwritten(&self) -> usize {
        self.input.len()
    }

    /// The captures of the outputs as they are.
    pub fn captures(&self) -> impl Iterator<Item = Option<&O>> {
        self.outputs.iter().map(|side| side.output.as_ref())
    }

    /// The captures of the outputs, to take out what was read.
    pub fn captures_mut(&mut self) -> impl Iterator<Item = Option<&mut O>> {
        self.outputs.iter_mut().map(|side| side.output.as_mut())
    }

    /// The captures of the outputs. Closes what is not at its end.
    pub fn into_captures(self) -> impl Iterator<Item = Option<O>> {
        self.outputs.into_iter().map(|side| side.output)
    }

    /// Writes what there is room for; false if there is none.
    fn write(&mut self, at_once: Patience<'_>) -> io::Result<bool> {
        let Some(stdin) = &self.stdin else {
            return Ok(false);
        };
        let written = match self.input.is_empty() {
            true => Ok(0),
            false => stdin.write_with(&self.input, at_once),
        };
        match written {
            Ok(n) => {
                self.input.advance(n);
                if !self.input.is_empty() {
                    return Ok(true);
                }
                stdin.close();
            }
            Err(e) if e.kind() == io::ErrorKind::TimedOut => return Ok(false),
            // The child reads no more.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => drop(stdin.close()),
            Err(e) => {
                // Told once: the next call goes on with the outputs.
                if Closed::is(&e) {
                    self.stdin = None;
                }
                return Err(e);
            }
        }
        self.stdin = None;
        Ok(true)
    }

    /// Sleeps until a stream can go on, one of `rings` is readable or the deadline has come.
    ///
    /// # Errors
    /// `Interrupted` once `interrupt` is readable.
    fn sleep(
        &self,
        until: Deadline,
        rings: &[Arc<Wake>],
        interrupt: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let outputs = self.open_readiness().flatten();
        let stdin = self.stdin.iter().map(Writer::readiness);
        let streams: Vec<Readiness> = stdin.chain(outputs).collect::<io::Result<_>>()?;
        let fds = streams.iter().map(AsFd::as_fd);
        let fds = interrupt
            .into_iter()
            .chain(fds)
            .chain(rings.iter().map(|ring| ring.as_fd()));
        let mut fds: Vec<_> = fds.map(|fd| Fd::from_borrowed_fd(fd, Flags::IN)).collect();
        match poll::poll(&mut fds, until) {
            // A signal handler has run. A host that wants to know passes an interrupt.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(e) => Err(e),
            Ok(_) if interrupt.is_some() && !fds[0].revents().is_empty() => {
                Err(io::ErrorKind::Interrupted.into())
            }
            Ok(_) => Ok(()),
        }
    }
}

impl Communication {
    /// The bytes that were read so far of each output.
    pub fn outputs(&self) -> Vec<&[u8]> {
        self.captures()
            .map(|output| output.map_or(&[][..], CapturedOutput::data))
            .collect()
    }

    /// How many bytes of each were dropped, as the [`Overflow`](crate::Overflow)
    /// says.
    pub fn dropped(&self) -> Vec<u64> {
        self.captures()
            .map(|output| output.map_or(0, CapturedOutput::dropped))
            .collect()
    }

    /// The bytes that were read of each output. Closes what is not at its end.
    pub fn into_outputs(self) -> Vec<Vec<u8>> {
        self.into_captures()
            .map(|output| output.map_or_else(Vec::new, CapturedOutput::into_data))
            .collect()
    }
}

impl<O> CommunicationOutput<O> {
    fn is_open(&self) -> bool {
        self.progress == OutputProgress::Open
    }

    fn end(&mut self, progress: OutputProgress) {
        self.progress = progress;
        self.polled = OnceBox::new();
    }
}

impl<O: OutputCapture> CommunicationOutput<O> {
    fn readiness(&self) -> Option<io::Result<Readiness>> {
        let output = self.output.as_ref().filter(|_| self.is_open())?;
        if let Some(polled) = self.polled.get() {
            return Some(Ok(polled.clone()));
        }
        let polled = output.readiness();
        Some(polled.map(|polled| self.polled.get_or_insert(polled).clone()))
    }

    /// Reads what is there; false if nothing is.
    fn read(&mut self, at_once: Patience<'_>) -> io::Result<bool> {
        let is_open = self.is_open();
        let Some(output) = self.output.as_mut().filter(|_| is_open) else {
            return Ok(false);
        };
        match output.read_some(at_once) {
            Ok(true) => Ok(true),
            Ok(false) => {
                self.end(OutputProgress::Ended);
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(e) => {
                // Told once: the next call goes on with the other streams.
                if Closed::is(&e) {
                    self.end(OutputProgress::Closed);
                }
                Err(e)
            }
        }
    }
}
