//! From a child's stdout or stderr.

use std::io::{self, Read};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::outlet::Account;
use super::pipe::Pipe;
use super::spool::Spool;
use super::{Patience, Readiness};
use crate::spool::elastic::Figures;
use crate::sys::pipe::FullProbe;
use crate::sys::ready::On;
use crate::time::Timeout;

/// The reading end of a child's stdout or stderr.
///
/// Reads block until there is something, and no longer than until somebody
/// closes the reader. Nothing is buffered on this side but what the
/// [`Overflow`](crate::Overflow) of the child says. All clones are one: closing
/// one closes all, and so does dropping the last; the child's next write then
/// fails, as with any pipe.
#[derive(Clone, Debug)]
pub struct Reader(Arc<Source>);

/// A [`Reader`] for those who must not keep its stream open.
#[derive(Clone, Debug)]
pub struct WeakReader(Weak<Source>);

impl WeakReader {
    /// The reader, none once all others are gone.
    pub fn upgrade(&self) -> Option<Reader> {
        self.0.upgrade().map(Reader)
    }
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk {
    /// So many bytes.
    Bytes(usize),
    /// So many bytes were dropped here, as [`Overflow`](crate::Overflow) says.
    Gap(u64),
    /// The end of the stream.
    End,
}

#[derive(Debug)]
enum Source {
    /// The bare pipe.
    Pipe(Pipe),
    /// What the pump has read of it.
    Spool(Spool),
}

impl Reader {
    pub(crate) fn of_pipe(
        fd: OwnedFd,
        probe: Option<Arc<FullProbe>>,
        account: Arc<Account>,
    ) -> io::Result<Reader> {
        let pipe = Pipe::new(fd, probe, account)?;
        Ok(Reader(Arc::new(Source::Pipe(pipe))))
    }

    pub(crate) fn of_spool(spool: Spool) -> Reader {
        Reader(Arc::new(Source::Spool(spool)))
    }

    /// Reads what is there, waiting for something at most for `timeout`; 0 at
    /// the end of the stream, and for an empty buffer.
    ///
    /// Where [`Overflow`](crate::Overflow) drops bytes, those before and behind the
    /// gap follow one another with no mark in between, here and in
    /// [`Read`]; [`read_with`](Reader::read_with) tells of the gap, and
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
            Source::Pipe(pipe) => pipe.read(buffer, patience),
            Source::Spool(spool) => spool.read(buffer, patience),
        }
    }

    fn read_some(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<usize> {
        loop {
            match self.read_with(buffer, patience)? {
                Chunk::Bytes(n) => return Ok(n),
                Chunk::End => return Ok(0),
                // Counted, and told of by `figures`.
                Chunk::Gap(_) => {}
            }
        }
    }

    /// How it stands: what waits to be read, what was spilled or dropped. None
    /// where nothing of it is kept on this side, and in a fork.
    pub fn figures(&self) -> Option<Figures> {
        match &*self.0 {
            Source::Pipe(_) => None,
            Source::Spool(spool) => spool.figures(),
        }
    }

    /// For how long the program could not write so far, because its pipe was full:
    /// 0 if it never was, and else an upper bound. Where the program writes
    /// to a bare pipe that comes from the pauses of whoever reads it; else only
    /// from a queue that has no room. None in a fork, and of a terminal: whether
    /// that is full cannot be told from here.
    pub fn blocked(&self) -> Option<Duration> {
        match &*self.0 {
            Source::Pipe(pipe) => pipe.blocked(),
            Source::Spool(spool) => spool.blocked(),
        }
    }

    /// Readable once there is something to read, at the end and once it is closed.
    /// Takes one descriptor or, for a bare pipe, two.
    ///
    /// # Errors
    /// When no descriptor is left; `Unsupported` in a fork.
    pub fn readiness(&self) -> io::Result<Readiness> {
        Ok(match &*self.0 {
            Source::Pipe(pipe) => Readiness::of_handle(pipe.handle().readiness(On::Read)?),
            Source::Spool(spool) => Readiness::of_queue(spool.readiness()?),
        })
    }

    /// The number of the bare pipe, to be handed on; none where a queue stands
    /// between. From then on the pipe blocks, as whoever gets it expects, and what
    /// is read here he does not get. It stays this reader's.
    ///
    /// # Errors
    /// [`Closed`](super::Closed); `Unsupported` in a fork.
    pub fn lend_pipe(&self) -> io::Result<Option<RawFd>> {
        Ok(match &*self.0 {
            Source::Pipe(pipe) => Some(pipe.handle().lend()?),
            Source::Spool(_) => None,
        })
    }

    /// The same reader for somebody who must not keep the stream open.
    pub fn downgrade(&self) -> WeakReader {
        WeakReader(Arc::downgrade(&self.0))
    }

    /// Closes it; false if it was closed before. Returns at once. Whoever is
    /// blocked in a read gets [`Closed`](super::Closed), in that call.
    pub fn close(&self) -> bool {
        match &*self.0 {
            Source::Pipe(pipe) => pipe.close(),
            Source::Spool(spool) => spool.close(),
        }
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        match &*self.0 {
            Source::Pipe(pipe) => pipe.handle().is_closed(),
            Source::Spool(spool) => spool.is_closed(),
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
