//! Into a child's stdin.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{Patience, Readiness};
use crate::handle::Handle;
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
pub struct Writer(Arc<Handle>);

impl Writer {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Writer> {
        Ok(Writer(Arc::new(Handle::new(fd)?)))
    }

    /// Writes some of `data`, and says how much.
    ///
    /// # Errors
    /// `BrokenPipe` if nobody reads any more, [`Closed`](super::Closed) if it is
    /// closed, `TimedOut` if there was no room in time.
    pub fn write_for(&self, data: &[u8], timeout: impl Into<Timeout>) -> io::Result<usize> {
        self.write_with(data, Patience::from(timeout))
    }

    /// Writes some of `data`, and says how much.
    ///
    /// # Errors
    /// As [`write_for`](Writer::write_for); `Interrupted` when the patience says
    /// so, and then nothing was written.
    pub fn write_with(&self, data: &[u8], patience: Patience<'_>) -> io::Result<usize> {
        let written = self.0.operate(Flags::OUT, patience, |fd| {
            without_sigpipe(|| Ok(rustix::io::write(fd, data)?))
        });
        Ok(written?)
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

    /// Readable once there is room to write, once nobody reads any more, and once
    /// it is closed. Takes two descriptors.
    ///
    /// # Errors
    /// When no descriptor is left; `Unsupported` in a fork.
    pub fn readiness(&self) -> io::Result<Readiness> {
        Ok(Readiness::of_handle(self.0.readiness(On::Write)?))
    }

    /// Closes it, so that the child comes to the end of its input; false if it
    /// was closed before. Returns at once. Whoever is blocked in a write gets
    /// [`Closed`](super::Closed).
    pub fn close(&self) -> bool {
        self.0.close()
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
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
