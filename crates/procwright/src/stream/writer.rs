//! Into a child's stdin.

use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use super::stall::{Patient, StallWatch};
use super::{Patience, Readiness};
use crate::handle::{Handle, Refused};
use crate::sys::fork;
use crate::sys::poll::Flags;
use crate::sys::ready::On;
use crate::sys::signal::without_sigpipe;
use crate::time::Timeout;

/// The writing end of a child's stdin.
///
/// Writes block while the pipe is full, and no longer than until somebody closes
/// the writer. Nothing is buffered: what `write` took is in the pipe. A child
/// that reads no more makes them fail with `BrokenPipe`; no SIGPIPE is sent,
/// whatever its disposition is. All clones are one: closing one closes all, and
/// so does dropping the last.
#[derive(Clone, Debug)]
pub struct Writer(Arc<Stdin>);

#[derive(Debug)]
struct Stdin {
    handle: Handle,
    watch: Arc<StallWatch>,
}

/// What `poll` promises room for.
const ATOMIC: usize = rustix::pipe::PIPE_BUF;

impl Writer {
    /// `watch` tells when the child does not go on.
    pub(crate) fn new(fd: OwnedFd, watch: Arc<StallWatch>) -> io::Result<Writer> {
        let handle = Handle::new(fd)?;
        Ok(Writer(Arc::new(Stdin { handle, watch })))
    }

    /// Writes some of `data`, and says how much.
    ///
    /// # Errors
    /// `BrokenPipe` if nobody reads any more, [`Closed`](super::Closed) if it is
    /// closed, `TimedOut` if there was no room in time. [`Stalled`](super::Stalled)
    /// if there was none for as long as [`Command::stall_after`] says because the
    /// child waits for somebody to read its output; the write may be made again.
    ///
    /// [`Command::stall_after`]: crate::Command::stall_after
    pub fn write_for(&self, data: &[u8], timeout: impl Into<Timeout>) -> io::Result<usize> {
        self.write_with(data, Patience::from(timeout))
    }

    /// Writes some of `data`, and says how much.
    ///
    /// # Errors
    /// As [`write_for`](Writer::write_for); `Interrupted` when the patience says
    /// so, and then nothing was written.
    pub fn write_with(&self, data: &[u8], patience: Patience<'_>) -> io::Result<usize> {
        // A blocking pipe that has room for this much takes it at once.
        let most = match self.0.handle.is_lent() {
            true => data.len().min(ATOMIC),
            false => data.len(),
        };
        let data = &data[..most];
        let mut patient = Patient::writing(&self.0.watch, Instant::now());
        let mut again = patient.first();
        loop {
            let until = patience.no_later_than(again);
            let written = self.0.handle.operate(Flags::OUT, until, |fd| {
                without_sigpipe(|| Ok(rustix::io::write(fd, data)?))
            });
            let now = Instant::now();
            match written {
                Err(Refused::TimedOut) if !patience.deadline().reached(now) => {
                    again = patient.look(now).map_err(io::Error::other)?.at;
                }
                written => return Ok(written?),
            }
        }
    }

    /// Writes all of `data`. On an error some of it may have been written.
    ///
    /// # Errors
    /// As [`write_for`](Writer::write_for).
    pub fn write_all_for(&self, mut data: &[u8], timeout: impl Into<Timeout>) -> io::Result<()> {
        let patience = Patience::from(timeout);
        while !data.is_empty() {
            let n = self.write_with(data, patience)?;
            data = &data[n..];
        }
        Ok(())
    }

    /// Whether something can be written at all.
    ///
    /// # Errors
    /// [`Closed`](super::Closed); `Unsupported` in a fork.
    pub fn check(&self) -> io::Result<()> {
        if self.0.handle.is_forked() {
            return Err(fork::not_ours());
        }
        match self.0.handle.is_closed() {
            true => Err(io::Error::other(super::Closed)),
            false => Ok(()),
        }
    }

    /// The number of the pipe, to be handed on: see
    /// [`Reader::lend_pipe`](super::Reader::lend_pipe).
    ///
    /// # Errors
    /// As there.
    pub fn lend_pipe(&self) -> io::Result<RawFd> {
        Ok(self.0.handle.lend()?)
    }

    /// Readable once there is room to write, once nobody reads any more, and once
    /// it is closed. Takes two descriptors.
    ///
    /// # Errors
    /// When no descriptor is left; `Unsupported` in a fork.
    pub fn readiness(&self) -> io::Result<Readiness> {
        Ok(Readiness::of_handle(self.0.handle.readiness(On::Write)?))
    }

    /// Closes it, so that the child comes to the end of its input; false if it
    /// was closed before. Returns at once. Whoever is blocked in a write gets
    /// [`Closed`](super::Closed).
    pub fn close(&self) -> bool {
        self.0.handle.close()
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.0.handle.is_closed()
    }
}

impl Write for &Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.write_with(data, Patience::NEVER_ENDING)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.write_with(data, Patience::NEVER_ENDING)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
