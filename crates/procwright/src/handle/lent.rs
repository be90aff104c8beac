//! A descriptor whose number is handed on, to another program or another library.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

use super::{Handle, Refused};

impl Handle {
    /// Its number, and it blocks from now on: whoever gets it expects that, and the
    /// mode belongs to the pipe's end and not to one descriptor. Our operations then
    /// look before each attempt. What they see somebody else may take before them;
    /// so who hands the number on leaves the pipe to him.
    ///
    /// # Errors
    /// When it is closed; in a fork.
    pub(crate) fn lend(&self) -> Result<RawFd, Refused> {
        let inside = self.gate.enter().ok_or(Refused::Closed)?;
        let fd = inside.get()?;
        self.lent.store(true, Ordering::SeqCst);
        rustix::io::ioctl_fionbio(fd, false).map_err(io::Error::from)?;
        Ok(fd.as_raw_fd())
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.lent.load(Ordering::SeqCst)
    }
}
