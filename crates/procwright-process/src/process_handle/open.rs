//! Getting a handle without meaning a later process of the same number.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{NoPidfd, ProcessHandle, is_reaped, no_such_process};
use crate::proc_id::ProcId;
use procwright_os::fork::OnceBox;
use procwright_os::pidfd::{self, OpenError};
use procwright_os::proc::{self, ProcStat};
use procwright_os::wait;

impl ProcessHandle {
    /// Takes hold of the process that `stat` was read of, and reads it once more while
    /// it is held: what the second reading says is of this very process, and so is what
    /// is read by its number as long as it is not reaped. None if it was reaped.
    ///
    /// Two processes can have number and start in common where numbers come round within
    /// a clock tick, so nothing may be concluded from `stat` itself.
    ///
    /// The descriptor may be one of the last: see
    /// [`release_if_scarce`](ProcessHandle::release_if_scarce).
    pub(crate) fn hold(stat: &ProcStat) -> Option<(ProcessHandle, ProcStat)> {
        let unwatched = |id| ProcessHandle {
            id,
            pidfd: None,
            child_of: None,
            told: OnceBox::new(),
            known_reaped: false,
        };
        // 1. The descriptor means the process that has the number now.
        let pidfd = match pidfd::open_briefly(stat.pid) {
            Ok(fd) => Some(fd),
            Err(OpenError::Gone) => return None,
            Err(OpenError::Temporary | OpenError::Unavailable) => None,
        };
        // 2. It is read by the number.
        let again = match proc::stat(stat.pid) {
            Ok(again) if ProcId::from(stat).is(&again) => again,
            Ok(_) => return None,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            // No descriptor is left for this look: give the pidfd back.
            Err(_) => return Some((unwatched(ProcId::from(stat)), *stat)),
        };
        let id = ProcId::from(&again);
        let Some(pidfd) = pidfd else {
            return Some((unwatched(id), again));
        };
        // 3. It is not reaped, so it has had the number since 1, and 2 was of it. In
        //    another order it could end, and the number move on, between the two.
        if is_reaped(pidfd.as_fd()) {
            return None;
        }
        let handle = ProcessHandle {
            id: id.with_inode(pidfd::inode(pidfd.as_fd())),
            pidfd: Some(pidfd),
            child_of: None,
            told: OnceBox::new(),
            known_reaped: false,
        };
        Some((handle, again))
    }

    /// Opens the process that has this number now.
    ///
    /// # Errors
    /// `NotFound` if there is none; a thread that does not lead a process is none
    /// either. `Unsupported` if this process has neither pidfds nor `/proc`, so that
    /// the number could go to another unnoticed. Where no pidfd could be had, those of
    /// the look in `/proc` as well.
    pub(crate) fn open(pid: i32) -> io::Result<ProcessHandle> {
        match pidfd::open(pid) {
            Ok(fd) => Ok(ProcessHandle::of_pidfd(pid, fd)),
            Err(OpenError::Gone) => Err(no_such_process()),
            Err(OpenError::Temporary | OpenError::Unavailable) => {
                ProcessHandle::open_by_number(pid)
            }
        }
    }

    /// The handle of the process that a pidfd names, whose number is `pid`.
    pub(crate) fn of_pidfd(pid: i32, pidfd: OwnedFd) -> ProcessHandle {
        let inode = pidfd::inode(pidfd.as_fd());
        // Without an inode the start tells this process from later ones of the
        // number. It was read of this one if it is not reaped now.
        let start_ticks = match inode {
            Some(_) => 0,
            None => proc::stat(pid)
                .ok()
                .filter(|_| !is_reaped(pidfd.as_fd()))
                .map_or(0, |stat| stat.start_ticks),
        };
        ProcessHandle {
            id: ProcId::unread(pid, start_ticks).with_inode(inode),
            pidfd: Some(pidfd),
            child_of: None,
            told: OnceBox::new(),
            known_reaped: false,
        }
    }

    fn open_by_number(pid: i32) -> io::Result<ProcessHandle> {
        // An own child keeps its number until the reap. A reap by other code is
        // noticed, since it then is no child any more.
        let own_child = wait::peek_child(pid).is_ok();
        let id = match proc::stat(pid) {
            Ok(stat) if own_child || proc::is_process(pid)? => ProcId::from(&stat),
            Err(e) if e.kind() == io::ErrorKind::NotFound && !own_child => {
                return Err(if proc::stat(1).is_ok() {
                    e
                } else {
                    unwatchable()
                });
            }
            _ if own_child => ProcId::unread(pid, 0),
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return Err(unwatchable()),
            Err(e) => return Err(e),
            Ok(_) => return Err(no_such_process()),
        };
        Ok(ProcessHandle {
            id,
            pidfd: None,
            child_of: own_child.then(std::process::id),
            told: OnceBox::new(),
            known_reaped: false,
        })
    }

    /// The handle of an own child that has not been reaped, with the pidfd that its
    /// spawner got, if any. There is nothing to check.
    pub fn child(id: ProcId, pidfd: Option<OwnedFd>) -> ProcessHandle {
        let inode = pidfd.as_ref().and_then(|fd| pidfd::inode(fd.as_fd()));
        ProcessHandle {
            id: id.with_inode(inode.or(id.inode())),
            pidfd,
            child_of: Some(std::process::id()),
            told: OnceBox::new(),
            known_reaped: false,
        }
    }

    /// Opens a pidfd of it; none once it is reaped. It may be had now where it was
    /// refused before.
    pub(crate) fn pidfd_now(&self) -> Result<Option<OwnedFd>, NoPidfd> {
        self.opened_by(pidfd::open)
    }

    /// Opens a pidfd of it for one call, even if that takes the last descriptor; none
    /// once it is reaped.
    pub(super) fn pidfd_briefly(&self) -> Result<Option<OwnedFd>, NoPidfd> {
        self.opened_by(pidfd::open_briefly)
    }

    fn opened_by(
        &self,
        open: impl FnOnce(i32) -> Result<OwnedFd, OpenError>,
    ) -> Result<Option<OwnedFd>, NoPidfd> {
        if self.known_reaped {
            return Ok(None);
        }
        let fd = match open(self.id.pid()) {
            Ok(fd) => fd,
            Err(OpenError::Gone) => return Ok(None),
            Err(OpenError::Temporary) => return Err(NoPidfd::Now),
            Err(OpenError::Unavailable) => return Err(NoPidfd::Never),
        };
        // No two processes of a boot have one inode.
        if let (Some(ours), Some(its)) = (self.id.inode(), pidfd::inode(fd.as_fd())) {
            return Ok((ours == its && !is_reaped(fd.as_fd())).then_some(fd));
        }
        // 1. The number is that of this process now.
        let ours = match proc::stat(self.id.pid()) {
            Ok(stat) if self.id.start_ticks() > 0 => self.id.is(&stat),
            // Known by its number alone: an own child, unless it was reaped.
            Ok(_) if self.is_own_child() => wait::peek(self.id.pid(), fd.as_fd()).is_ok(),
            // Known by a pidfd only, which this copy of the handle lacks.
            Ok(_) => return Err(NoPidfd::Never),
            Err(e) if e.kind() == io::ErrorKind::NotFound && is_proc_there() => false,
            Err(_) if self.is_own_child() => wait::peek(self.id.pid(), fd.as_fd()).is_ok(),
            Err(_) => return Err(NoPidfd::Now),
        };
        // 2. The process of the pidfd is not reaped, so the number was its own when 1
        //    looked.
        Ok((ours && !is_reaped(fd.as_fd())).then_some(fd))
    }

    /// A handle of this process by number and start time only.
    pub(crate) fn by_number(&self) -> ProcessHandle {
        ProcessHandle {
            id: self.id,
            pidfd: None,
            child_of: self.child_of,
            told: self.told.clone(),
            known_reaped: self.known_reaped,
        }
    }

    /// A handle that needs no descriptor, of a process that is known to be reaped.
    pub(crate) fn reaped(&self) -> ProcessHandle {
        ProcessHandle {
            known_reaped: true,
            ..self.by_number()
        }
    }

    /// This handle with the start time of `id`, if it has none and `id` is of the same
    /// number.
    pub(crate) fn with_start_of(mut self, id: ProcId) -> ProcessHandle {
        if self.id.start_ticks() == 0 && self.id.pid() == id.pid() {
            self.id = id.with_inode(self.id.inode());
        }
        self
    }

    /// A second handle, with a descriptor of its own.
    pub(crate) fn duplicate(&self) -> io::Result<ProcessHandle> {
        Ok(ProcessHandle {
            id: self.id,
            pidfd: self.pidfd().map(|fd| fd.try_clone_to_owned()).transpose()?,
            child_of: self.child_of,
            told: self.told.clone(),
            known_reaped: self.known_reaped,
        })
    }
}

/// Whether `/proc` is there; it may hide some processes.
fn is_proc_there() -> bool {
    proc::stat(rustix::process::getpid().as_raw_pid()).is_ok()
}

fn unwatchable() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "neither pidfd_open(2) nor /proc is there, so a stranger could take its number unnoticed",
    )
}
