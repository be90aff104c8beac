//! Talking to a child in one go: all of its input, and all of its output.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};

use super::Child;
use crate::stream::{Chunk, Closed, Patience, Patient, Reader, Readiness, StallWatch, Writer};
use crate::sys::poll::{self, Fd, Flags};
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// Feeds a child its input and collects both of its outputs: what
/// [`Child::communicate`] gives.
///
/// It has the streams of the child, and what was read of them: a timeout or an
/// interrupt loses nothing, [`proceed`](Communication::proceed) goes on where it
/// was. Dropped, it closes them.
#[derive(Debug)]
pub struct Communication {
    stdin: Option<Writer>,
    input: Bytes,
    outputs: [Output; 2],
    /// An output that is not read here may hold up those that are.
    watch: Arc<StallWatch>,
    /// What is read goes here first: a `Vec` must not be read into beyond what
    /// is in it.
    buffer: Vec<u8>,
}

#[derive(Debug, Default)]
struct Output {
    /// None at its end.
    reader: Option<Reader>,
    data: Vec<u8>,
    gaps: u64,
}

/// The largest single read.
const READ: usize = 128 * 1024;

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
    /// let [stdout, stderr] = talk.into_outputs();
    /// assert_eq!((stdout.len(), stderr.len()), (1 << 20, 0));
    /// assert!(child.wait(None)?.unwrap().success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn communicate(&mut self, input: impl Into<Bytes>) -> Communication {
        let output = |reader| Output {
            reader,
            ..Output::default()
        };
        Communication {
            stdin: self.stdin.take(),
            input: input.into(),
            outputs: [output(self.stdout.take()), output(self.stderr.take())],
            watch: Arc::clone(self.watch()),
            buffer: Vec::new(),
        }
    }
}

impl Communication {
    /// Goes on until all is written and both outputs are at their end, which is
    /// when everybody has closed them, processes that the child has left behind
    /// included. Closes stdin once all is written; that the child does not read
    /// all of it is no error. Not how the child ends: wait for that afterwards.
    ///
    /// # Blocking
    /// Until then, or as long as the patience says.
    ///
    /// # Errors
    /// `TimedOut` and `Interrupted` when the patience ends: call it again.
    /// [`Closed`](crate::stream::Closed) if somebody has closed a stream, once for
    /// each: the others can still be gone on with. [`Stalled`](crate::stream::Stalled)
    /// if the child waits for somebody to read an output that is not read here: it
    /// was taken out before. Whatever else a read or write of these streams says.
    /// What was read before stays here in any case.
    pub fn proceed<'a>(&mut self, patience: impl Into<Patience<'a>>) -> io::Result<()> {
        let patience = patience.into();
        let watch = Arc::clone(&self.watch);
        let mut patient = None;
        loop {
            // First what is there, so that a patience that is over before it
            // began still brings what needs no wait.
            let moved = self.write()? | self.read(0)? | self.read(1)?;
            if self.is_done() {
                return Ok(());
            }
            let now = Instant::now();
            if patience.deadline().reached(now) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if moved {
                patient = None;
                // A flood must not hide an interrupt: looked at also if nothing waits.
                if patience.interrupt().is_some() {
                    self.sleep(patience, Deadline::at(now), None)?;
                }
                continue;
            }
            let begins = || match self.stdin {
                Some(_) => Patient::writing(&watch, now),
                None => Patient::waiting(&watch, now),
            };
            let patient = patient.get_or_insert_with(begins);
            let again = patient.look(now).map_err(io::Error::other)?;
            self.sleep(
                patience,
                patience.deadline().min(again.at),
                again.ring.as_deref(),
            )?;
        }
    }

    /// Whether there is nothing more to be done.
    pub fn is_done(&self) -> bool {
        self.stdin.is_none() && self.outputs.iter().all(|output| output.reader.is_none())
    }

    /// What was read so far, of stdout and stderr.
    pub fn outputs(&self) -> [&[u8]; 2] {
        self.outputs.each_ref().map(|output| &output.data[..])
    }

    /// How many bytes of each were dropped, as the [`Overflow`](crate::Overflow)
    /// says.
    pub fn dropped(&self) -> [u64; 2] {
        self.outputs.each_ref().map(|output| output.gaps)
    }

    /// How many bytes of the input are not written, and will not be if it is done:
    /// the child has not read them.
    pub fn unwritten(&self) -> usize {
        self.input.len()
    }

    /// What was read, of stdout and stderr. Closes what is not at its end.
    pub fn into_outputs(self) -> [Vec<u8>; 2] {
        self.outputs.map(|output| output.data)
    }

    fn write(&mut self) -> io::Result<bool> {
        let Some(stdin) = &self.stdin else {
            return Ok(false);
        };
        if self.input.is_empty() {
            self.stdin = None;
            return Ok(true);
        }
        match stdin.write_for(&self.input, Duration::ZERO) {
            Ok(n) => self.input.advance(n),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.stdin = None,
            Err(e) if e.kind() == io::ErrorKind::TimedOut => return Ok(false),
            Err(e) => {
                // Or it would say so for ever, and nobody read the outputs.
                if Closed::is(&e) {
                    self.stdin = None;
                }
                return Err(e);
            }
        }
        Ok(true)
    }

    fn read(&mut self, index: usize) -> io::Result<bool> {
        let output = &mut self.outputs[index];
        let Some(reader) = &output.reader else {
            return Ok(false);
        };
        self.buffer.resize(READ, 0);
        match reader.read_with(&mut self.buffer, Patience::from(Duration::ZERO)) {
            Ok(Chunk::Bytes(n)) => output.data.extend_from_slice(&self.buffer[..n]),
            Ok(Chunk::Gap(n)) => output.gaps += n,
            Ok(Chunk::End) => {
                output.gaps = reader.figures().map_or(0, |figures| figures.dropped_bytes);
                output.reader = None;
            }
            Err(e) if e.kind() == io::ErrorKind::TimedOut => return Ok(false),
            Err(e) => {
                if Closed::is(&e) {
                    output.reader = None;
                }
                return Err(e);
            }
        }
        Ok(true)
    }

    fn sleep(
        &self,
        patience: Patience<'_>,
        until: Deadline,
        ring: Option<&Wake>,
    ) -> io::Result<()> {
        let stdin = self.stdin.as_ref().map(Writer::readiness).transpose()?;
        let readers = self.outputs.each_ref().map(|output| &output.reader);
        let readers: io::Result<Vec<Readiness>> = readers
            .into_iter()
            .flatten()
            .map(Reader::readiness)
            .collect();
        let readers = readers?;
        let interrupt = patience
            .interrupt()
            .map(|fd| Fd::from_borrowed_fd(fd, Flags::IN));
        let stdin = stdin
            .as_ref()
            .map(|stdin| Fd::from_borrowed_fd(stdin.as_fd(), Flags::IN));
        let readers = readers
            .iter()
            .map(|reader| Fd::from_borrowed_fd(reader.as_fd(), Flags::IN));
        let ring = ring.map(|ring| Fd::new(ring, Flags::IN));
        let fds = interrupt.into_iter().chain(stdin).chain(readers);
        let mut fds: Vec<_> = fds.chain(ring).collect();
        match poll::poll(&mut fds, until) {
            // A signal handler has run. Whoever wants to know has a descriptor.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(e) => Err(e),
            Ok(_) if patience.interrupt().is_some() && !fds[0].revents().is_empty() => {
                Err(io::ErrorKind::Interrupted.into())
            }
            Ok(_) => Ok(()),
        }
    }
}
