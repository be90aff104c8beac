//! Into the program's standard input.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use bytes::{Buf, Bytes};

use super::budget::Grant;
use crate::spool::fifo::{BoxError, Fifo, Take};
use crate::sys::pipe;

/// Where the bytes come from.
#[derive(Debug)]
pub(crate) enum Input {
    /// They are all here.
    Bytes(Bytes),
    /// A producer's thread brings them.
    Queue(Arc<Fifo<Bytes>>),
}

/// What a step found.
#[derive(Debug)]
pub(crate) enum Fed {
    /// Bytes were moved.
    Moved,
    /// The pipe is full: wait for it to become writable.
    Full,
    /// The producer has brought nothing yet: wait for the wake-up.
    Empty,
    /// All is written, or the program reads no more: the pipe is closed.
    Done,
    /// The producer failed.
    Failed(BoxError),
}

/// The writing end of the program's stdin and what goes into it.
#[derive(Debug)]
pub(crate) struct Feed {
    fd: OwnedFd,
    input: Input,
    chunk: Bytes,
    full_pipes: u8,
    grant: Option<Grant>,
}

impl Feed {
    /// Feeds `input` into `fd`, which must be non-blocking.
    pub(crate) fn new(fd: OwnedFd, input: Input) -> Feed {
        let (chunk, input) = match input {
            Input::Bytes(bytes) => (bytes, Input::Bytes(Bytes::new())),
            queue => (Bytes::new(), queue),
        };
        Feed {
            fd,
            input,
            chunk,
            full_pipes: 0,
            grant: None,
        }
    }

    /// Writes once.
    ///
    /// # Errors
    /// What `write(2)` says of a broken descriptor. A program that reads no
    /// more is not among them: it may well have all that it needs.
    pub(crate) fn step(&mut self) -> io::Result<Fed> {
        while self.chunk.is_empty() {
            let Input::Queue(queue) = &self.input else {
                return Ok(Fed::Done);
            };
            match queue.try_take() {
                Take::Chunk(chunk) => self.chunk = chunk,
                Take::Empty => return Ok(Fed::Empty),
                Take::End => return Ok(Fed::Done),
                Take::Failed(error) => return Ok(Fed::Failed(error)),
            }
        }
        match rustix::io::write(&self.fd, &self.chunk) {
            Ok(n) => {
                self.chunk.advance(n);
                Ok(Fed::Moved)
            }
            Err(rustix::io::Errno::AGAIN) => {
                self.grow();
                Ok(Fed::Full)
            }
            Err(rustix::io::Errno::INTR) => Ok(Fed::Moved),
            Err(rustix::io::Errno::PIPE) => Ok(Fed::Done),
            Err(e) => Err(e.into()),
        }
    }

    /// A larger pipe at the second time that it was full.
    fn grow(&mut self) {
        self.full_pipes = self.full_pipes.saturating_add(1);
        if self.full_pipes == 2
            && let Some(grant) = Grant::take(super::VOLUME_CAPACITY)
            && pipe::grow(&self.fd, super::VOLUME_CAPACITY).is_ok()
        {
            self.grant = Some(grant);
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // The producer learns that nobody wants more and ends its thread.
        if let Input::Queue(queue) = &self.input {
            queue.close(None);
        }
    }
}
