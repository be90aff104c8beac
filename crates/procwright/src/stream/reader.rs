//! From a child's stdout or stderr.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::Patience;
use super::outlet::Account;
use super::readiness::Readiness;
use super::spool::Spool;
use crate::buffer::Figures;
use crate::handle::Handle;
use crate::sys::poll::Flags;
use crate::time::{Deadline, Timeout};

/// The reading end of a child's stdout or stderr.
///
/// Reads block until there is something, and no longer than until somebody
/// closes the reader. Nothing is buffered on this side but what the
/// [`Overflow`](crate::Overflow) of the child says. All clones are one: closing
/// one closes all, and so does dropping the last; the child's next write then
/// fails, as with any pipe.
#[derive(Clone, Debug)]
pub struct Reader(Arc<Source>);

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
    Pipe(Handle, Arc<Account>),
    /// What the pump has read of it.
    Spool(Spool),
}

impl Reader {
    pub(crate) fn of_pipe(fd: OwnedFd, account: Arc<Account>) -> io::Result<Reader> {
        Ok(Reader(Arc::new(Source::Pipe(Handle::new(fd)?, account))))
    }

    pub(crate) fn of_spool(spool: Spool) -> Reader {
        Reader(Arc::new(Source::Spool(spool)))
    }

    /// Reads what is there, waiting for something at most for `timeout`; 0 at
    /// the end of the stream, and for an empty buffer.
    ///
    /// Where [`Overflow`](crate::Overflow) drops bytes, those before and behind the
    /// gap follow one another with no mark in between;
    /// [`figures`](Reader::figures) counts what was dropped.
    ///
    /// # Errors
    /// [`Closed`](super::Closed) if it is closed, `TimedOut` if nothing came in
    /// time.
    pub fn read_for(&self, buffer: &mut [u8], timeout: impl Into<Timeout>) -> io::Result<usize> {
        self.read_some(buffer, timeout.into().starting(Instant::now()))
    }

    /// Reads what is there, and tells where bytes were dropped.
    ///
    /// # Errors
    /// As [`read_for`](Reader::read_for); `Interrupted` when the patience says so.
    pub fn read_with(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<Chunk> {
        Ok(match self.read_some(buffer, patience.deadline())? {
            0 if !buffer.is_empty() => Chunk::End,
            n => Chunk::Bytes(n),
        })
    }

    fn read_some(&self, buffer: &mut [u8], deadline: Deadline) -> io::Result<usize> {
        match &*self.0 {
            Source::Pipe(handle, account) => {
                account.touch();
                let read = handle.operate(Flags::IN, deadline, |fd| {
                    Ok(rustix::io::read(fd, &mut *buffer)?)
                })?;
                if !buffer.is_empty() {
                    account.read(read);
                }
                Ok(read)
            }
            Source::Spool(spool) => spool.read(buffer, deadline),
        }
    }

    /// How it stands: what waits to be read, what was spilled or dropped. None
    /// where nothing of it is kept on this side, and in a fork.
    pub fn figures(&self) -> Option<Figures> {
        match &*self.0 {
            Source::Pipe(..) => None,
            Source::Spool(spool) => spool.figures(),
        }
    }

    /// A descriptor that is readable once there is something to read, or the end.
    ///
    /// # Errors
    /// [`Closed`](super::Closed), or no descriptor is left.
    pub fn readiness(&self) -> io::Result<Readiness> {
        match &*self.0 {
            Source::Pipe(handle, _) => Readiness::of_handle(handle),
            Source::Spool(spool) => spool.readiness().map(Readiness::of_queue),
        }
    }

    /// Closes it; false if it was closed before. Returns at once. Whoever is
    /// blocked in a read gets [`Closed`](super::Closed), in that call.
    pub fn close(&self) -> bool {
        match &*self.0 {
            Source::Pipe(handle, _) => handle.close(),
            Source::Spool(spool) => spool.close(),
        }
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        match &*self.0 {
            Source::Pipe(handle, _) => handle.is_closed(),
            Source::Spool(spool) => spool.is_closed(),
        }
    }
}

impl Read for &Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_some(buffer, Deadline::NEVER)
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_some(buffer, Deadline::NEVER)
    }
}
