//! All of the input of a pipeline, and all of its outputs, in one go.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes};

use crate::child::{CapturedOutput, OutputCapture};
use crate::stream::{Patience, Reader, Readiness, StallCheck, StallWatch, Writer};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;

/// Feeds a pipeline its input and reads its outputs, on one thread.
pub(super) struct Talk {
    stdin: Option<Writer>,
    input: Bytes,
    outputs: Vec<Option<TalkOutput>>,
    /// Tell of an output that is not read here and holds up those that are.
    watches: Vec<Arc<StallWatch>>,
}

struct TalkOutput {
    capture: CapturedOutput,
    has_ended: bool,
}

impl Talk {
    pub(super) fn new(
        stdin: Option<Writer>,
        outputs: impl Iterator<Item = Option<Reader>>,
        watches: Vec<Arc<StallWatch>>,
    ) -> Talk {
        let output = |reader: Reader| TalkOutput {
            capture: CapturedOutput::new(reader),
            has_ended: false,
        };
        Talk {
            stdin,
            input: Bytes::new(),
            outputs: outputs.map(|reader| reader.map(output)).collect(),
            watches,
        }
    }

    /// Has this written as well, behind what is left.
    pub(super) fn add(&mut self, input: Bytes) {
        self.input = match self.input.is_empty() {
            true => input,
            false => [&self.input[..], &input].concat().into(),
        };
    }

    /// Goes on until all is written and all outputs are at their ends.
    ///
    /// # Errors
    /// Those of the reads and writes; a stall in one of kind `Other`. Nothing is lost then.
    pub(super) fn proceed(&mut self) -> io::Result<()> {
        let mut stalls = None;
        loop {
            let at_once = Patience::until(Deadline::at(Instant::now()));
            let mut has_moved = self.write(at_once)?;
            for output in self.outputs.iter_mut().flatten() {
                has_moved |= output.read(at_once)?;
            }
            let are_open = self.open_outputs().next().is_some();
            if self.stdin.is_none() && !are_open {
                return Ok(());
            }
            if has_moved {
                stalls = None;
                continue;
            }
            let now = Instant::now();
            let checks: &mut Vec<StallCheck> = stalls.get_or_insert_with(|| {
                let begin = match self.stdin {
                    Some(_) => StallCheck::writing,
                    None => StallCheck::waiting,
                };
                let watches = self.watches.iter();
                watches.map(|watch| begin(watch, now)).collect()
            });
            let mut until = Deadline::NEVER;
            let mut rings = Vec::new();
            for check in checks {
                let next = check.check(now).map_err(io::Error::other)?;
                until = until.min(next.at);
                rings.extend(next.ring);
            }
            let outputs = self.open_outputs().map(|one| one.capture.readiness());
            let stdin = self.stdin.iter().map(Writer::readiness);
            let streams: Vec<Readiness> = stdin.chain(outputs).collect::<io::Result<_>>()?;
            let rings = rings.iter().map(|ring| ring.as_fd());
            let fds = streams.iter().map(AsFd::as_fd).chain(rings);
            let mut fds: Vec<_> = fds.map(|fd| Fd::from_borrowed_fd(fd, Flags::IN)).collect();
            match poll::poll(&mut fds, until) {
                // A signal handler has run.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                polled => drop(polled?),
            }
        }
    }

    /// What was read of each output, none of one that was taken out before.
    pub(super) fn into_outputs(self) -> Vec<Option<Vec<u8>>> {
        let outputs = self.outputs.into_iter();
        outputs
            .map(|output| output.map(|output| output.capture.into_data()))
            .collect()
    }

    fn open_outputs(&self) -> impl Iterator<Item = &TalkOutput> {
        let outputs = self.outputs.iter().flatten();
        outputs.filter(|output| !output.has_ended)
    }

    /// Writes what there is room for; false if there is none.
    fn write(&mut self, at_once: Patience<'_>) -> io::Result<bool> {
        let Some(stdin) = &self.stdin else {
            return Ok(false);
        };
        if !self.input.is_empty() {
            match stdin.write_with(&self.input, at_once) {
                Ok(n) => {
                    self.input.advance(n);
                    if !self.input.is_empty() {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
                // The first stage reads no more.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) => return Err(error),
            }
        }
        stdin.close();
        self.stdin = None;
        Ok(true)
    }
}

impl TalkOutput {
    /// Reads what is there; false if nothing is.
    fn read(&mut self, at_once: Patience<'_>) -> io::Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        match self.capture.read_some(at_once) {
            Ok(more) => {
                self.has_ended = !more;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(error),
        }
    }
}
