//! Consumers that may be slow: each has a thread and a queue of its own, so
//! that a callback that never returns holds up neither the drain nor a
//! deadline, and none of the other consumers.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::spool::fifo::{BoxError, Fifo};
use crate::sys::poll::{self, Flags};
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// Gets a copy of a stream, chunk by chunk, on a thread of its own.
pub trait Tap: Send {
    /// The next bytes of the stream.
    ///
    /// # Errors
    /// Any error ends this consumer. A required one stops the run with it.
    fn chunk(&mut self, bytes: &[u8]) -> Result<(), BoxError>;

    /// The stream has ended.
    ///
    /// # Errors
    /// As [`Tap::chunk`].
    fn end(&mut self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// What an error of a consumer means for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// The run is stopped and the error comes through.
    Required,
    /// It stands for the place where the stream would go without us. If that
    /// is gone, so is the program's pipe; any other error is as a required
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
    pub(crate) fifo: Arc<Fifo>,
    pub(crate) duty: Duty,
    pub(crate) stream: usize,
    pub(crate) finished: bool,
    pub(crate) error: Option<BoxError>,
}

impl Consumer {
    /// Starts a thread that consumes a stream.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start(
        mut kind: Kind,
        duty: Duty,
        stream: usize,
        wake: &Arc<Wake>,
    ) -> io::Result<Consumer> {
        let fifo = Fifo::new(Arc::clone(wake));
        let queue = Arc::clone(&fifo);
        thread::Builder::new()
            .name("procwright-tap".into())
            .spawn(move || {
                // Also when the tap panics: whoever waits for it must learn.
                let closing = CloseOnDrop(&queue);
                let result = consume(&queue, &mut kind);
                // Its captures go before the run is told: what a callback
                // holds is free when `run` returns.
                drop(kind);
                std::mem::forget(closing);
                queue.close(result.err());
            })?;
        Ok(Consumer {
            fifo,
            duty,
            stream,
            finished: false,
            error: None,
        })
    }

    /// The run is over. A callback is not called again once `run` has returned;
    /// a copy to a file or terminal may still finish what it has.
    pub(crate) fn leave(&self) {
        if !self.finished && self.duty == Duty::Required {
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
}

struct CloseOnDrop<'a>(&'a Fifo);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(Some("the callback panicked".into()));
    }
}

fn consume(queue: &Fifo, kind: &mut Kind) -> Result<(), BoxError> {
    while let Some(chunk) = queue.take() {
        match kind {
            Kind::Chunks(tap) => tap.chunk(&chunk)?,
            Kind::Lines(lines) => lines.chunk(&chunk, queue)?,
        }
    }
    if queue.was_left() {
        return Ok(());
    }
    match kind {
        Kind::Chunks(tap) => tap.end(),
        Kind::Lines(lines) => lines.end(),
    }
}

/// How a consumer takes a stream.
pub(crate) enum Kind {
    /// As it comes.
    Chunks(Box<dyn Tap>),
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
    fn chunk(&mut self, bytes: &[u8], queue: &Fifo) -> Result<(), BoxError> {
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
    fn chunk(&mut self, mut bytes: &[u8]) -> Result<(), BoxError> {
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
    fn chunk(&mut self, bytes: &[u8]) -> Result<(), BoxError> {
        self.0.write_all(bytes)?;
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
    fn chunk(&mut self, bytes: &[u8]) -> Result<(), BoxError> {
        Ok(self.0.write_all(bytes)?)
    }
}
