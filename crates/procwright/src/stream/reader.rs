//! [`Reader`]: the reading end of a child's stdout or stderr.

use std::io::{self, Read};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::chunk::Chunk;
use super::function_flags::FunctionFlags;
use super::output_monitor::PipeCounters;
use super::pipe_reader::PipeReader;
use super::queue_reader::QueueReader;
use super::readiness::Readiness;
use crate::spool::elastic::Figures;
use procwright_os::handle::{Closed, Patience};
use procwright_os::pipe::FullProbe;
use procwright_os::ready::Interest;
use procwright_os::time::Timeout;

/// The reading end of a child's stdout or stderr.
///
/// Reads block until there is something, and no longer than until the reader is
/// closed. Nothing is buffered on this side but what the
/// [`Overflow`](crate::Overflow) of the child says. All clones are one: closing
/// one closes all, and so does dropping the last; the child's next write then
/// fails, as with any pipe.
#[doc(alias = "std::process::ChildStdout")]
#[doc(alias = "std::process::ChildStderr")]
#[derive(Clone, Debug)]
pub struct Reader(Arc<ReaderSource>);

/// A [`Reader`] that does not keep its stream open.
#[derive(Clone, Debug)]
pub struct WeakReader(Weak<ReaderSource>);

impl WeakReader {
    /// The reader, none once all others are gone.
    pub fn upgrade(&self) -> Option<Reader> {
        self.0.upgrade().map(Reader)
    }
}

#[derive(Debug)]
enum ReaderSource {
    /// The bare pipe.
    Pipe(PipeReader),
    /// The queue into which the pump reads it.
    Queue(QueueReader),
}

impl Reader {
    pub(crate) fn of_pipe(
        fd: OwnedFd,
        probe: Option<Arc<FullProbe>>,
        counters: Arc<PipeCounters>,
    ) -> io::Result<Reader> {
        let pipe = PipeReader::new(fd, probe, counters)?;
        Ok(Reader(Arc::new(ReaderSource::Pipe(pipe))))
    }

    /// Reads for a function between two programs.
    pub(crate) fn of_function(fd: OwnedFd, flags: Arc<FunctionFlags>) -> io::Result<Reader> {
        let pipe = PipeReader::new(fd, None, Arc::default())?.of_function(flags);
        Ok(Reader(Arc::new(ReaderSource::Pipe(pipe))))
    }

    pub(crate) fn of_queue(queue: QueueReader) -> Reader {
        Reader(Arc::new(ReaderSource::Queue(queue)))
    }

    /// Reads what is there, waiting for something at most for `timeout`; 0 at
    /// the end of the stream, and for an empty buffer.
    ///
    /// Bytes before and behind a gap, where [`Overflow`](crate::Overflow) dropped some,
    /// follow one another with no mark in between, here and in [`Read`]; [`read_with`](Reader::read_with) tells of the gap, and
    /// [`figures`](Reader::figures) counts what was dropped.
    ///
    /// # Errors
    /// [`Closed`](super::Closed) if it is closed, `TimedOut` if nothing came in
    /// time.
    pub fn read_for(&self, buffer: &mut [u8], timeout: impl Into<Timeout>) -> io::Result<usize> {
        self.read_some(buffer, Patience::from(timeout))
    }

    /// Reads what is there, and tells where bytes were dropped.
    ///
    /// # Errors
    /// As [`read_for`](Reader::read_for); `Interrupted` when the patience says so,
    /// and then nothing was read.
    pub fn read_with(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<Chunk> {
        match &*self.0 {
            ReaderSource::Pipe(pipe) => pipe.read(buffer, patience),
            ReaderSource::Queue(queue) => queue.read(buffer, patience),
        }
    }

    fn read_some(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<usize> {
        loop {
            match self.read_with(buffer, patience)? {
                Chunk::Bytes(n) => return Ok(n),
                Chunk::End => return Ok(0),
                // The gap is counted: `figures` tells of it.
                Chunk::Gap(_) => {}
            }
        }
    }

    /// The figures of its queue: what waits to be read, what was spilled or dropped.
    /// None where nothing is kept on this side, and in a fork.
    pub fn figures(&self) -> Option<Figures> {
        match &*self.0 {
            ReaderSource::Pipe(_) => None,
            ReaderSource::Queue(queue) => queue.figures(),
        }
    }

    /// The time for which the program could not write so far, because its pipe was
    /// full: 0 if it never was, and else an upper bound. Where the program writes to a
    /// bare pipe that comes from the pauses between reads; else only from a queue that
    /// has no room. None in a fork, and of a terminal: whether that is full cannot be
    /// told from here.
    pub fn blocked(&self) -> Option<Duration> {
        match &*self.0 {
            ReaderSource::Pipe(pipe) => pipe.blocked(),
            ReaderSource::Queue(queue) => queue.blocked(),
        }
    }

    /// A descriptor that is readable once there is something to read, at the end and once it is closed.
    /// Takes one descriptor or, for a bare pipe, two.
    ///
    /// # Errors
    /// When no descriptor is left; `Unsupported` in a fork.
    pub fn readiness(&self) -> io::Result<Readiness> {
        Ok(match &*self.0 {
            ReaderSource::Pipe(pipe) => {
                Readiness::of_handle(pipe.handle().readiness(Interest::Read)?)
            }
            ReaderSource::Queue(queue) => Readiness::of_queue(queue.readiness()?),
        })
    }

    /// The number of the bare pipe, to be handed on; none where a queue stands
    /// between. From then on the pipe blocks, as its other user expects, who does not
    /// get what is read here. It stays this reader's.
    ///
    /// # Errors
    /// [`Closed`](super::Closed); `Unsupported` in a fork.
    pub fn lend_pipe(&self) -> io::Result<Option<RawFd>> {
        Ok(match &*self.0 {
            ReaderSource::Pipe(pipe) => Some(pipe.handle().expose_fd()?),
            ReaderSource::Queue(_) => None,
        })
    }

    /// A handle to this reader that does not keep the stream open.
    pub fn downgrade(&self) -> WeakReader {
        WeakReader(Arc::downgrade(&self.0))
    }

    /// Closes it; false if it was closed before. Returns at once. A read that is
    /// blocked meanwhile fails with [`Closed`](super::Closed).
    pub fn close(&self) -> bool {
        match &*self.0 {
            ReaderSource::Pipe(pipe) => pipe.close(),
            ReaderSource::Queue(queue) => queue.close(),
        }
    }

    /// The error of a call on it once it is closed.
    pub(super) fn closed_error(&self) -> io::Error {
        match &*self.0 {
            ReaderSource::Pipe(pipe) => pipe.closed_error(),
            ReaderSource::Queue(_) => io::Error::other(Closed),
        }
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        match &*self.0 {
            ReaderSource::Pipe(pipe) => pipe.handle().is_closed(),
            ReaderSource::Queue(queue) => queue.is_closed(),
        }
    }
}

impl Read for &Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_some(buffer, Patience::NEVER_ENDING)
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_some(buffer, Patience::NEVER_ENDING)
    }
}
