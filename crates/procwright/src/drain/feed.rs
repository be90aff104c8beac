//! The feed: from memory or a producer into the program's standard input.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use bytes::{Buf, Bytes};

use super::pipe_budget::{PipeMemoryGrant, VOLUME_CAPACITY};
use crate::error::BoxError;
use crate::spool::fifo::{Fifo, TakeOutcome};
use procwright_os::fork::CloseOnFork;
use procwright_os::pipe;

/// The source of the bytes.
#[derive(Debug)]
pub(crate) enum FeedSource {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A queue that a producer's thread fills.
    Queue(Arc<Fifo<Bytes>>),
}

/// The outcome of a step.
#[derive(Debug)]
pub(crate) enum FeedStep {
    /// Bytes were moved.
    Moved,
    /// The pipe is full: wait for it to become writable.
    Full,
    /// The producer has brought nothing yet: wait for the wake-up.
    Empty,
    /// The end: all is written, or the program reads no more. The pipe is closed.
    Done,
    /// The producer failed.
    Failed(BoxError),
}

/// The writing end of the program's stdin, and what goes into it.
#[derive(Debug)]
pub(crate) struct Feed {
    /// No fork keeps a copy: the program would see no end of its input.
    fd: CloseOnFork,
    input: FeedSource,
    chunk: Bytes,
    full_pipes: u8,
    grant: Option<PipeMemoryGrant>,
}

impl Feed {
    /// Feeds `input` into `fd`, which must be non-blocking.
    pub(crate) fn new(fd: OwnedFd, input: FeedSource) -> Feed {
        let (chunk, input) = match input {
            FeedSource::Bytes(bytes) => (bytes, FeedSource::Bytes(Bytes::new())),
            queue => (Bytes::new(), queue),
        };
        Feed {
            fd: CloseOnFork::new(fd),
            input,
            chunk,
            full_pipes: 0,
            grant: None,
        }
    }

    /// Writes once.
    ///
    /// # Errors
    /// Those of `write(2)` for a broken descriptor; in a fork, which has none. A program that
    /// reads no more is no error: it may well have all that it needs.
    pub(crate) fn step(&mut self) -> io::Result<FeedStep> {
        while self.chunk.is_empty() {
            let FeedSource::Queue(queue) = &self.input else {
                return Ok(FeedStep::Done);
            };
            match queue.try_take() {
                TakeOutcome::Chunk(chunk) => self.chunk = chunk,
                TakeOutcome::Empty => return Ok(FeedStep::Empty),
                TakeOutcome::End => return Ok(FeedStep::Done),
                TakeOutcome::Failed(error) => return Ok(FeedStep::Failed(error)),
            }
        }
        match rustix::io::write(self.fd.get()?, &self.chunk) {
            Ok(n) => {
                self.chunk.advance(n);
                Ok(FeedStep::Moved)
            }
            Err(rustix::io::Errno::AGAIN) => {
                self.grow();
                Ok(FeedStep::Full)
            }
            Err(rustix::io::Errno::INTR) => Ok(FeedStep::Moved),
            Err(rustix::io::Errno::PIPE) => Ok(FeedStep::Done),
            Err(e) => Err(e.into()),
        }
    }

    /// Makes the pipe larger the second time that it was full.
    fn grow(&mut self) {
        self.full_pipes = self.full_pipes.saturating_add(1);
        if self.full_pipes == 2
            && let Some(grant) = PipeMemoryGrant::take(VOLUME_CAPACITY)
            && let Ok(fd) = self.fd.get()
            && pipe::grow(fd, VOLUME_CAPACITY).is_ok()
        {
            self.grant = Some(grant);
        }
    }

    /// The descriptor, for a poll.
    ///
    /// # Errors
    /// In a fork, which has none.
    pub(crate) fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        self.fd.get()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // The producer learns that no more is wanted, and ends its thread.
        if let FeedSource::Queue(queue) = &self.input {
            queue.close(None);
        }
    }
}
