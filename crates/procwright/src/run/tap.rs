//! Consumers that may be slow: each has a thread and a queue of its own, so
//! that a callback that never returns holds up neither the drain nor a
//! deadline, and none of the other consumers.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use crate::drain::Chunk;
use crate::spool::fifo::{BoxError, Fifo};
use crate::sys::poll::{self, Flags};
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// A piece of output, as it was read in one go.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// 1 for stdout, 2 for stderr.
    pub stream: u8,
    /// What the clock said right after the read, however late the piece is looked
    /// at.
    pub read_at: SystemTime,
    /// The bytes, at least one.
    pub bytes: &'a [u8],
}

/// Gets a copy of a stream or of both, piece by piece, on a thread of its own.
///
/// For who gets both, the order is that of reading. It is exact within a stream;
/// between the two it is that of writing as long as the program writes no faster
/// than it is read.
pub trait Tap: Send {
    /// The next bytes.
    ///
    /// # Errors
    /// Any error ends this consumer. A required one stops the run with it.
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError>;

    /// Nothing more comes, of no stream.
    ///
    /// # Errors
    /// As [`Tap::piece`].
    fn end(&mut self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// What an error of a consumer means for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// The run is stopped and the error comes through.
    Required,
    /// It stands for the place where the streams would go without us. If that
    /// of one is gone, so is the program's pipe; any other error is as a required
    /// one's.
    Relays,
    /// The consumer is left out from there on.
    Optional,
    /// So too, and the result says which file is not whole.
    Keeps(PathBuf),
}

/// A running consumer, as the run sees it.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) fifo: Arc<Fifo<Chunk>>,
    pub(crate) duty: Duty,
    /// Which streams it gets.
    pub(crate) streams: [bool; 2],
    /// Which of them it was seen to take no more of.
    broken: [bool; 2],
    pub(crate) finished: bool,
    pub(crate) error: Option<BoxError>,
}

impl Consumer {
    /// Starts a thread that consumes a stream or both.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start(
        mut kind: Kind,
        duty: Duty,
        streams: [bool; 2],
        wake: &Arc<Wake>,
    ) -> io::Result<Consumer> {
        let count = streams.iter().filter(|gets| **gets).count();
        let fifo = Fifo::new(Arc::clone(wake), count);
        let relays = duty == Duty::Relays;
        let queue = Arc::clone(&fifo);
        thread::Builder::new()
            .name("procwright-tap".into())
            .spawn(move || {
                // Also when the tap panics: whoever waits for it must learn.
                let closing = CloseOnDrop(&queue);
                let result = consume(&queue, &mut kind, relays);
                // Its captures go before the run is told: what a callback
                // holds is free when `run` returns.
                drop(kind);
                std::mem::forget(closing);
                queue.close(result.err());
            })?;
        Ok(Consumer {
            fifo,
            duty,
            streams,
            broken: [false; 2],
            finished: false,
            error: None,
        })
    }

    /// The run is over. A callback is not called again once `run` has returned;
    /// a copy to a file may still finish what it has. So may not what passes the
    /// streams on, beyond what it is writing: that was counted as not delivered,
    /// and the next run has the same place.
    pub(crate) fn leave(&self) {
        if !self.finished && matches!(self.duty, Duty::Required | Duty::Relays) {
            self.fifo.leave();
        }
    }

    /// Looks whether it has finished; true if it just has.
    pub(crate) fn look(&mut self) -> bool {
        if self.finished {
            return false;
        }
        let (finished, error) = self.fifo.closed();
        self.finished = finished;
        self.error = error;
        finished
    }

    /// The streams that it takes no more of since this was last asked.
    pub(crate) fn newly_broken(&mut self) -> impl Iterator<Item = usize> + use<> {
        let now = self.fifo.broken();
        let before = std::mem::replace(&mut self.broken, now);
        (0..2).filter(move |&stream| now[stream] && !before[stream])
    }
}

/// The run is gone, and may have been left before its end, by its caller or by a panic:
/// no drain will tell of an end then.
impl Drop for Consumer {
    fn drop(&mut self) {
        self.leave();
        self.fifo.end_all();
    }
}

struct CloseOnDrop<'a>(&'a Fifo<Chunk>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(Some("the callback panicked".into()));
    }
}

fn consume(queue: &Fifo<Chunk>, kind: &mut Kind, relays: bool) -> Result<(), BoxError> {
    while let Some(chunk) = queue.take() {
        let taken = match kind {
            Kind::Pieces(tap) => tap.piece(Piece {
                stream: if chunk.stream == 0 { 1 } else { 2 },
                read_at: chunk.read_at,
                bytes: &chunk.bytes,
            }),
            Kind::Lines(lines) => lines.chunk(&chunk.bytes, queue),
        };
        match taken {
            // Of one stream: the other may go elsewhere.
            Err(error) if relays && is_broken_pipe(&error) => queue.break_off(chunk.stream),
            taken => taken?,
        }
    }
    if queue.was_left() {
        return Ok(());
    }
    match kind {
        Kind::Pieces(tap) => match tap.end() {
            Err(error) if relays && is_broken_pipe(&error) => Ok(()),
            ended => ended,
        },
        Kind::Lines(lines) => lines.end(),
    }
}

fn is_broken_pipe(error: &BoxError) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// How a consumer takes a stream.
pub(crate) enum Kind {
    /// As it comes.
    Pieces(Box<dyn Tap>),
    /// Line by line.
    Lines(Lines),
}

/// Gets a line, with its end; the last one may have none.
pub(crate) type LineCallback = Box<dyn FnMut(&[u8]) -> Result<(), BoxError> + Send>;

/// Calls back for each line.
pub(crate) struct Lines {
    callback: LineCallback,
    partial: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(callback: LineCallback) -> Lines {
        Lines {
            callback,
            partial: Vec::new(),
        }
    }

    /// Stops between two lines once the run is over: a chunk can hold thousands.
    fn chunk(&mut self, bytes: &[u8], queue: &Fifo<Chunk>) -> Result<(), BoxError> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if queue.was_left() {
                return Ok(());
            }
            if !piece.ends_with(b"\n") {
                self.partial.extend_from_slice(piece);
            } else if self.partial.is_empty() {
                (self.callback)(piece)?;
            } else {
                self.partial.extend_from_slice(piece);
                let line = std::mem::take(&mut self.partial);
                (self.callback)(&line)?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), BoxError> {
        if self.partial.is_empty() {
            return Ok(());
        }
        let line = std::mem::take(&mut self.partial);
        (self.callback)(&line)
    }
}

/// Copies a stream to a descriptor, such as the caller's own stdout.
pub(crate) struct Tee(File);

impl Tee {
    pub(crate) fn new(fd: OwnedFd) -> Tee {
        Tee(File::from(fd))
    }
}

impl Tap for Tee {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let mut bytes = piece.bytes;
        while !bytes.is_empty() {
            match self.0.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // Somebody who shares the terminal has made it non-blocking.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [poll::Fd::from_borrowed_fd(self.0.as_fd(), Flags::OUT)];
                    let _ = poll::poll(&mut fds, Deadline::NEVER);
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

/// Copies a stream to a writer of the caller's.
pub(crate) struct Writer<W>(pub(crate) W);

impl<W: Write + Send> Tap for Writer<W> {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        self.0.write_all(piece.bytes)?;
        Ok(self.0.flush()?)
    }
}

/// Keeps all of a stream in a file.
pub(crate) struct FullFile(File);

impl FullFile {
    pub(crate) fn create(path: &Path) -> io::Result<FullFile> {
        File::create(path).map(FullFile)
    }
}

impl Tap for FullFile {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        Ok(self.0.write_all(piece.bytes)?)
    }
}
