//! The number of a handle's descriptor, for another program or another library.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

use super::{Handle, HandleError};

impl Handle {
    /// The number of the descriptor, which blocks from now on: other code expects that,
    /// and the mode belongs to the pipe's end and not to one descriptor. Our operations
    /// then poll before each attempt. Other code may take what they saw first, so a
    /// caller that passes the number on leaves the pipe alone.
    ///
    /// # Errors
    /// When the handle is closed; in a fork.
    #[doc(alias = "fileno")]
    #[doc(alias = "as_raw_fd")]
    pub fn expose_fd(&self) -> Result<RawFd, HandleError> {
        let inside = self.fd.enter().ok_or(HandleError::Closed)?;
        let fd = inside.get()?;
        // SeqCst, here and in `is_exposed`: an operation that finds the descriptor blocking
        // finds the flag set, since the mode is changed after it.
        self.exposed.store(true, Ordering::SeqCst);
        rustix::io::ioctl_fionbio(fd, false).map_err(io::Error::from)?;
        Ok(fd.as_raw_fd())
    }

    /// True once [`expose_fd`](Handle::expose_fd) was called.
    pub fn is_exposed(&self) -> bool {
        self.exposed.load(Ordering::SeqCst)
    }
}
