//! Signals to a process, and to no later one of the same number.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::{ProcessHandle, Shown, is_reaped, no_such_process};
use crate::Signal;
use procwright_os::{pidfd, signal, wait};

impl ProcessHandle {
    /// Checks whether a signal may be sent to it; sends none.
    ///
    /// # Errors
    /// Those of [`signal`](ProcessHandle::signal).
    pub(crate) fn may_signal(&self) -> io::Result<()> {
        self.send(0)
    }

    /// Sends a signal to this very process.
    ///
    /// # Errors
    /// `ESRCH` if it was reaped (a zombie takes any signal without effect), `EPERM` if
    /// it is another user's. If there is no pidfd and no look at it, the error of that
    /// look, and nothing is sent.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        self.send(signal.number())
    }

    fn send(&self, signal: i32) -> io::Result<()> {
        if let Some(fd) = &self.pidfd {
            match pidfd::send(fd.as_fd(), signal) {
                Err(e) if !is_reaped_by(&e) => {}
                answer => return answer,
            }
        }
        // A descriptor for this one call means the process as well as one that is kept.
        let opened = match &self.pidfd {
            Some(_) => Ok(None),
            None => self.pidfd_briefly(),
        };
        match opened {
            Ok(Some(fd)) => match pidfd::send(fd.as_fd(), signal) {
                Err(e) if !is_reaped_by(&e) => {}
                answer => return answer,
            },
            Ok(None) if self.pidfd.is_none() => return Err(no_such_process()),
            Ok(None) | Err(_) => {}
        }
        match self.pidfd() {
            // Not reaped: it has its number.
            Some(fd) if !is_reaped(fd) => {}
            Some(_) => return Err(no_such_process()),
            None => match self.shown() {
                Shown::Other => return Err(no_such_process()),
                Shown::This(_) => {}
                // Without /proc there is the number alone, which is enough for an own
                // child.
                Shown::Nothing(_) if self.is_own_child() => {
                    wait::peek_child(self.id.pid()).map_err(|_| no_such_process())?;
                }
                Shown::Nothing(error) => return Err(error),
            },
        }
        signal::kill(self.id.pid(), signal)
    }
}

/// Whether a signal by descriptor has failed because the process was reaped. Any other error
/// may be a seccomp filter's, which may know pidfd_open(2) and not this call: its EPERM
/// looks like that of another user's process. The signal by number decides then.
fn is_reaped_by(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::SRCH)
}
