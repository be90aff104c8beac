//! Which process: a name that outlives the reuse of its number.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::process::Signal;
use crate::sys::pidfd::{self, Refused};
use crate::sys::proc::{self, Stat};
use crate::sys::signal;

/// One process of this boot, also after its number was given to another.
///
/// The number alone names whoever has it now. Together with the start time it
/// names one process, since the kernel hands out all other numbers before it
/// repeats one, which no machine does within one clock tick; the pidfs inode,
/// where there is one (Linux 6.9), is never repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcId {
    pid: i32,
    start_ticks: u64,
    inode: Option<u64>,
}

impl ProcId {
    /// The process that has this number now. A zombie has its number still.
    ///
    /// For a child that no one can have reaped yet this is exact. For any other
    /// pid it names whoever has the number at the moment of the call.
    ///
    /// # Errors
    /// `NotFound` if no process has the number.
    #[cfg(test)]
    pub(crate) fn of(pid: i32) -> io::Result<ProcId> {
        Ok(ProcId::from(&proc::stat(pid)?))
    }

    /// The identity of a child where `/proc` cannot be read: the number, and a
    /// time before which it cannot have been started (0 if unknown). Good for a
    /// child that has not been reaped, which keeps its number.
    pub(crate) const fn unread(pid: i32, not_before_ticks: u64) -> ProcId {
        ProcId {
            pid,
            start_ticks: not_before_ticks,
            inode: None,
        }
    }

    /// The number.
    pub(crate) const fn pid(&self) -> i32 {
        self.pid
    }

    /// When it was started, in clock ticks since boot.
    pub(crate) const fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Whether this is the process that `stat` was read of.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        self.pid == stat.pid && self.start_ticks == stat.start_ticks
    }
}

impl From<&Stat> for ProcId {
    fn from(stat: &Stat) -> ProcId {
        ProcId {
            pid: stat.pid,
            start_ticks: stat.start_ticks,
            inode: None,
        }
    }
}

impl PartialEq for ProcId {
    fn eq(&self, other: &ProcId) -> bool {
        let same_inode = match (self.inode, other.inode) {
            (Some(a), Some(b)) => a == b,
            // One was named where no inode could be had.
            _ => true,
        };
        same_inode && self.pid == other.pid && self.start_ticks == other.start_ticks
    }
}

impl Eq for ProcId {}

impl fmt::Display for ProcId {
    /// `PID:INODE` as util-linux writes it, `PID` without an inode.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inode {
            Some(inode) => write!(f, "{}:{inode}", self.pid),
            None => write!(f, "{}", self.pid),
        }
    }
}

/// A process that can be signalled and whose end can be awaited, without ever
/// meaning another.
///
/// With a pidfd that is exact. Where none can be had (a seccomp filter, no
/// descriptor free) signals go by number after the start time was compared
/// again, and one race remains: the process may end, be reaped, and its number
/// go once around and to another process, all between that look and the kill
/// some microseconds later. For a child that no one but its watcher reaps there
/// is no race, since a zombie keeps its number.
#[derive(Debug)]
pub(crate) struct Watched {
    id: ProcId,
    pidfd: Option<OwnedFd>,
    /// Keeps its number until we reap it.
    own_child: bool,
}

impl Watched {
    /// The process that `stat` was read of, none if it is gone by now.
    pub(crate) fn adopt(stat: &Stat) -> Option<Watched> {
        if stat.is_gone() {
            return None;
        }
        let id = ProcId::from(stat);
        let unwatched = Watched {
            id,
            pidfd: None,
            own_child: false,
        };
        let pidfd = match pidfd::open(stat.pid) {
            Ok(fd) => fd,
            Err(Refused::Gone) => return None,
            Err(Refused::Now | Refused::Never) => return Some(unwatched),
        };
        // The descriptor may be of a later owner of the number than `stat`, so
        // read again: what has the number now is what was meant, ...
        match proc::stat(stat.pid) {
            Ok(again) if id.is(&again) => {}
            Ok(_) => return None,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            // Not even a descriptor for this: give the one back.
            Err(_) => return Some(unwatched),
        }
        // ... and the descriptor's process has not ended. So it held the number
        // from the open until now, and the second reading was of it. Asked
        // before the reading, this would leave a gap in which it ends and the
        // number moves on.
        if pidfd::has_exited(pidfd.as_fd()).unwrap_or(false) {
            return None;
        }
        Some(Watched {
            id: ProcId {
                inode: pidfd::inode(pidfd.as_fd()),
                ..id
            },
            pidfd: Some(pidfd),
            own_child: false,
        })
    }

    /// Our own child which has not been reaped, with the pidfd that its spawner
    /// got, if any: nothing to check.
    pub(crate) fn child(id: ProcId, pidfd: Option<OwnedFd>) -> Watched {
        let inode = pidfd.as_ref().and_then(|fd| pidfd::inode(fd.as_fd()));
        Watched {
            id: ProcId {
                inode: inode.or(id.inode),
                ..id
            },
            pidfd,
            own_child: true,
        }
    }

    /// Which process this is.
    pub(crate) const fn id(&self) -> ProcId {
        self.id
    }

    /// The descriptor, readable once the process has ended.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Closes the descriptor of a process that has ended.
    pub(crate) fn release(&mut self) {
        self.pidfd = None;
    }

    /// Whether it has ended; it may be a zombie. An answer that cannot be had
    /// is "no".
    pub(crate) fn has_exited(&self) -> bool {
        let told = self.pidfd().map(pidfd::has_exited);
        if let Some(Ok(exited)) = told {
            return exited;
        }
        match proc::stat(self.id.pid) {
            Ok(stat) => !self.id.is(&stat) || stat.is_gone(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => true,
            Err(_) => false,
        }
    }

    /// Sends a signal to this very process.
    ///
    /// # Errors
    /// `ESRCH` if it was reaped (a zombie takes any signal without effect),
    /// `EPERM` if it is someone else's; another if it has no pidfd and cannot be
    /// looked at, when nothing was sent.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        if let Some(fd) = &self.pidfd {
            match pidfd::send(fd.as_fd(), signal.number()) {
                // A filter that knows pidfd_open but not this call. A filter's
                // EPERM looks like a foreign process's, so it is asked again by
                // number, which decides.
                Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::NOSYS | Errno::PERM)) => {}
                answer => return answer,
            }
        }
        match proc::stat(self.id.pid) {
            Ok(stat) if !self.id.is(&stat) => return Err(no_such_process()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(no_such_process()),
            Ok(_) => {}
            // Without /proc the number is all there is, and a child's is enough.
            Err(_) if self.own_child => {}
            Err(e) => return Err(e),
        }
        signal::kill(self.id.pid, signal.number())
    }
}

fn no_such_process() -> io::Error {
    Errno::SRCH.into()
}
