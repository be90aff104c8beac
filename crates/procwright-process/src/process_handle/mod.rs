//! A handle of a process that never comes to mean another: by pidfd, or by number and
//! start time.

mod ending;
mod open;
mod send;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;

use crate::proc_id::ProcId;
use procwright_os::fork::OnceBox;
use procwright_os::pidfd;
use procwright_os::proc::{self, ProcStat};
use procwright_os::wait;

pub(crate) use ending::Ending;

/// The reason why a process has no pidfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPidfd {
    /// No descriptor is free now.
    Now,
    /// This process cannot have pidfds at all.
    Never,
}

/// What `/proc` shows under the number of a process.
enum Shown {
    /// The process itself, as far as that can be told: where it is known by its number
    /// alone, the process that has the number.
    This(ProcStat),
    /// Another process, or none: the one that is meant is gone.
    Other,
    /// Nothing: it cannot be looked at.
    Nothing(io::Error),
}

/// A process that can be signalled and waited for, without ever meaning another.
///
/// With a pidfd that is exact. Where none can be had (a seccomp filter, no descriptor
/// free) signals go by number, and one race remains:
///
/// 1. The start time of the number is read and is that of the process.
/// 2. The process ends and is reaped; its number goes once around and to another.
/// 3. The signal, some microseconds after 1, reaches that other process.
///
/// For a child that only the holder of this handle reaps there is no race, since a
/// zombie keeps its number.
#[derive(Debug)]
pub struct ProcessHandle {
    id: ProcId,
    pidfd: Option<OwnedFd>,
    /// Number of the process whose child this is, if that is known: for that process
    /// the number of the child stays valid until the reap. A fork of it is no parent.
    child_of: Option<u32>,
    /// Set once the system has told of the end by number (kqueue), which it may do a
    /// moment before anything else shows it. The status is that of `wait(2)`, none if
    /// it was not told.
    told: OnceBox<Option<i32>>,
    /// Whether whoever has made the handle knows that the process is reaped: nothing is
    /// asked by its number any more, which may be anybody's.
    known_reaped: bool,
}

impl ProcessHandle {
    /// The identity of the process.
    pub(crate) const fn id(&self) -> ProcId {
        self.id
    }

    /// The descriptor, readable once the process has ended.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether it is a child of this process that was not reaped when the handle was
    /// made. Known only where there is no pidfd.
    pub(crate) fn is_own_child(&self) -> bool {
        self.child_of == Some(std::process::id())
    }

    /// Reads `/proc/PID/stat` of this very process.
    ///
    /// # Errors
    /// `NotFound` once it is reaped.
    pub(crate) fn stat(&self) -> io::Result<ProcStat> {
        let stat = proc::stat(self.id.pid())?;
        self.check_read_by_number(|| self.is_shown_by(&stat))?;
        Ok(stat)
    }

    /// The file of its program.
    ///
    /// # Errors
    /// `NotFound` once it has ended; `PermissionDenied` for another user's.
    pub(crate) fn exe(&self) -> io::Result<PathBuf> {
        let exe = proc::exe(self.id.pid())?;
        self.check_read_by_number(|| {
            proc::stat(self.id.pid()).is_ok_and(|stat| self.is_shown_by(&stat))
        })?;
        Ok(exe)
    }

    /// Whether `stat`, just read by its number, is of this process.
    fn is_shown_by(&self, stat: &ProcStat) -> bool {
        match self.id.start_ticks() {
            // No start to compare: an own child has its number until the reap.
            0 => self.is_own_child() && wait::peek_child(self.id.pid()).is_ok(),
            _ => self.id.is(stat),
        }
    }

    /// Fails if what was just read by number may be another process's. The process
    /// still has its number now, so it had it then.
    fn check_read_by_number(&self, without_pidfd: impl FnOnce() -> bool) -> io::Result<()> {
        let right = match self.pidfd() {
            _ if self.known_reaped => false,
            Some(fd) => !is_reaped(fd),
            None => without_pidfd(),
        };
        if right {
            Ok(())
        } else {
            Err(no_such_process())
        }
    }

    /// Whether its parent has collected its status, so that its number is free.
    pub(crate) fn is_reaped(&self) -> bool {
        match self.pidfd() {
            _ if self.known_reaped => true,
            Some(fd) => is_reaped(fd),
            None => match self.shown() {
                Shown::Other => true,
                Shown::This(_) | Shown::Nothing(_) => {
                    self.is_own_child() && wait::peek_child(self.id.pid()).is_err()
                }
            },
        }
    }

    /// Whether it has ended; it may be a zombie. False if that cannot be learned.
    pub(crate) fn has_exited(&self) -> bool {
        if self.known_reaped || self.told.get().is_some() {
            return true;
        }
        let told = self.pidfd().map(pidfd::has_exited);
        if let Some(Ok(exited)) = told {
            return exited;
        }
        match self.shown() {
            Shown::Other => true,
            // An own child that other code has reaped is no child any more.
            _ if self.is_own_child() => !matches!(wait::peek_child(self.id.pid()), Ok(None)),
            Shown::This(stat) => stat.is_gone(),
            Shown::Nothing(_) => false,
        }
    }

    /// Reads what `/proc` shows under the number.
    fn shown(&self) -> Shown {
        if self.known_reaped {
            return Shown::Other;
        }
        match proc::stat(self.id.pid()) {
            Ok(stat) if self.id.start_ticks() > 0 && !self.id.is(&stat) => Shown::Other,
            Ok(stat) => Shown::This(stat),
            // An own child may merely be hidden (`hidepid`).
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.is_own_child() => Shown::Other,
            Err(error) => Shown::Nothing(error),
        }
    }

    /// Notes that the system has told of the end, and perhaps of the status.
    pub(crate) fn set_ended(&self, status: Option<i32>) {
        // A second call has the same to say.
        self.told.get_or_insert(status);
    }

    /// Closes the descriptor.
    pub(crate) fn release(&mut self) {
        self.pidfd = None;
    }

    /// Closes the descriptor if it is one of the last that this process may have.
    pub(crate) fn release_if_scarce(&mut self) {
        if self.pidfd().is_some_and(pidfd::is_of_the_last) {
            self.release();
        }
    }
}

/// Whether the process of a pidfd was reaped. Where that cannot be known, a process that
/// has ended and is no child of this one counts as reaped.
fn is_reaped(pidfd: BorrowedFd<'_>) -> bool {
    pidfd::is_reaped(pidfd).unwrap_or_else(|| !wait::is_own_zombie(pidfd))
}

fn no_such_process() -> io::Error {
    Errno::SRCH.into()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::Signal;

    /// The number of one that is reaped is anybody's, and so is told of a process that lives.
    #[test]
    fn of_what_is_known_to_be_reaped_nothing_is_asked_by_number() {
        let own = rustix::process::getpid().as_raw_pid();
        let reaped = ProcessHandle::open(own).unwrap().reaped();
        assert!(reaped.pidfd().is_none() && reaped.is_reaped() && reaped.has_exited());
        assert!(matches!(reaped.pidfd_now(), Ok(None)));
        let gone = |error: io::Error| Errno::from_io_error(&error) == Some(Errno::SRCH);
        assert!(gone(reaped.stat().unwrap_err()) && gone(reaped.exe().unwrap_err()));
        assert!(gone(reaped.signal(Signal::CONT).unwrap_err()));
        assert!(gone(reaped.may_signal().unwrap_err()));
        assert!(reaped.duplicate().unwrap().is_reaped());
    }
}
