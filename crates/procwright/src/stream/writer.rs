//! Into a child's stdin.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::readiness::Readiness;
use super::stall::{Patient, StallWatch};
use crate::handle::{Handle, Refused};
use crate::sys::poll::Flags;
use crate::sys::signal::without_sigpipe;
use crate::time::{Deadline, Timeout};

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
        self.write_some(data, timeout.into().starting(Instant::now()))
    }

    /// Writes all of `data`. On an error some of it may have been written.
    ///
    /// # Errors
    /// As [`write_for`](Writer::write_for).
    pub fn write_all_for(&self, mut data: &[u8], timeout: impl Into<Timeout>) -> io::Result<()> {
        let deadline = timeout.into().starting(Instant::now());
        while !data.is_empty() {
            let n = self.write_some(data, deadline)?;
            data = &data[n..];
        }
        Ok(())
    }

    fn write_some(&self, data: &[u8], deadline: Deadline) -> io::Result<usize> {
        let began = Instant::now();
        let mut patient = Patient::writing(&self.0.watch, began);
        let mut again = patient.first();
        loop {
            let written = self
                .0
                .handle
                .operate(Flags::OUT, deadline.min(again), |fd| {
                    without_sigpipe(|| Ok(rustix::io::write(fd, data)?))
                });
            let now = Instant::now();
            match written {
                Err(Refused::TimedOut) if !deadline.reached(now) => {
                    again = patient.look(now).map_err(io::Error::other)?.at;
                }
                written => return Ok(written?),
            }
        }
    }

    /// A descriptor that is writable once there is room, or nobody reads any more.
    ///
    /// # Errors
    /// [`Closed`](super::Closed), or no descriptor is left.
    pub fn readiness(&self) -> io::Result<Readiness> {
        Readiness::of_handle(&self.0.handle)
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
        self.write_some(data, Deadline::NEVER)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.write_some(data, Deadline::NEVER)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
