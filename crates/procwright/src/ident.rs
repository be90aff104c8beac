//! Which process: a name that outlives the reuse of its number.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::io::Errno;

use crate::process::Signal;
use crate::sys::pidfd::{self, Life, Refused};
use crate::sys::proc::{self, Stat};
use crate::sys::signal;
use crate::sys::wait::{self, RawExit};

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

    /// Its inode in pidfs, where it has one.
    pub(crate) const fn inode(&self) -> Option<u64> {
        self.inode
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
        let same = match (self.inode, other.inode) {
            // No two have the same. The start of a child of ours is not read, so
            // that it says less than that of the same process found by its number.
            (Some(a), Some(b)) => a == b,
            // One was named where no inode could be had.
            _ => self.start_ticks == other.start_ticks,
        };
        same && self.pid == other.pid
    }
}

impl Eq for ProcId {}

/// Why a process has no pidfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPidfd {
    /// No descriptor was free.
    Now,
    /// This process can have none at all.
    Never,
}

enum Shown {
    /// This process, as far as that can be told: where it is known by its number
    /// alone, whoever has that.
    This(Stat),
    /// Another one, or none: it is gone.
    Other,
    /// It cannot be looked at.
    Nothing(io::Error),
}

/// How a process ended, as far as this process may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Not yet.
    Runs,
    /// So.
    Known(RawExit),
    /// It has ended and is not reaped, and we may not look into it.
    Zombie,
    /// It was reaped, and nobody else can say.
    Forgotten,
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
    /// The process whose child it is, if that is known: to it, this keeps its
    /// number until it is reaped. A fork of that is no parent of it.
    child_of: Option<u32>,
    /// Set once the system has told of its end where it tells by number: it may
    /// do so a moment before anything else shows it. With the status in the
    /// format of `wait(2)`, if it told that too.
    told: OnceLock<Option<i32>>,
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
            child_of: None,
            told: OnceLock::new(),
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
            child_of: None,
            told: OnceLock::new(),
        })
    }

    /// The process that has this number now.
    ///
    /// # Errors
    /// `NotFound` if there is none (a thread that does not lead a process is
    /// none either); another if it can neither be had a pidfd of nor be looked
    /// at in `/proc`, so that its number could be given away unnoticed.
    pub(crate) fn open(pid: i32) -> io::Result<Watched> {
        match pidfd::open(pid) {
            Ok(fd) => Ok(Watched::of_pidfd(pid, fd)),
            Err(Refused::Gone) => Err(no_such_process()),
            Err(Refused::Now | Refused::Never) => Watched::open_by_number(pid),
        }
    }

    /// The process that a pidfd names, whose number is `pid`.
    pub(crate) fn of_pidfd(pid: i32, pidfd: OwnedFd) -> Watched {
        let inode = pidfd::inode(pidfd.as_fd());
        // Without an inode the number alone would make it equal to whoever has
        // that later. It has its own still if it is not reaped now.
        let start_ticks = match inode {
            Some(_) => 0,
            None => proc::stat(pid)
                .ok()
                .filter(|_| !is_reaped(pidfd.as_fd()))
                .map_or(0, |stat| stat.start_ticks),
        };
        Watched {
            id: ProcId {
                inode,
                ..ProcId::unread(pid, start_ticks)
            },
            pidfd: Some(pidfd),
            child_of: None,
            told: OnceLock::new(),
        }
    }

    fn open_by_number(pid: i32) -> io::Result<Watched> {
        // A child of ours keeps its number until it is reaped; whoever reaps it
        // behind our back is noticed, since it then is no child any more.
        let own_child = wait::peek_child(pid).is_ok();
        let id = match proc::stat(pid) {
            Ok(stat) if own_child || proc::leads(pid)? => ProcId::from(&stat),
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
        Ok(Watched {
            id,
            pidfd: None,
            child_of: own_child.then(std::process::id),
            told: OnceLock::new(),
        })
    }

    /// A pidfd of it, none once it is reaped. Where one was refused before it may
    /// be had now.
    pub(crate) fn pidfd_now(&self) -> Result<Option<OwnedFd>, NoPidfd> {
        let fd = match pidfd::open(self.id.pid) {
            Ok(fd) => fd,
            Err(Refused::Gone) => return Ok(None),
            Err(Refused::Now) => return Err(NoPidfd::Now),
            Err(Refused::Never) => return Err(NoPidfd::Never),
        };
        // Whose number it is now, ...
        let ours = match proc::stat(self.id.pid) {
            Ok(stat) if self.id.start_ticks > 0 => self.id.is(&stat),
            // Named by its number alone: it was our child, and is if it was not
            // reaped.
            Ok(_) if self.is_own_child() => wait::peek(fd.as_fd()).is_ok(),
            // It was known by a pidfd, which is not at hand.
            Ok(_) => return Err(NoPidfd::Never),
            Err(e) if e.kind() == io::ErrorKind::NotFound && is_proc_there() => false,
            Err(_) if self.is_own_child() => wait::peek(fd.as_fd()).is_ok(),
            Err(_) => return Err(NoPidfd::Now),
        };
        // ... and that nobody else has had it since the descriptor was opened.
        Ok((ours && !is_reaped(fd.as_fd())).then_some(fd))
    }

    /// The same process, known by its number and start time only.
    pub(crate) fn by_number(&self) -> Watched {
        Watched {
            id: self.id,
            pidfd: None,
            child_of: self.child_of,
            told: self.told.clone(),
        }
    }

    /// The same once more, with a descriptor of its own.
    pub(crate) fn duplicate(&self) -> io::Result<Watched> {
        Ok(Watched {
            id: self.id,
            pidfd: self.pidfd().map(|fd| fd.try_clone_to_owned()).transpose()?,
            child_of: self.child_of,
            told: self.told.clone(),
        })
    }

    /// Whether it is a child of ours that was not reaped when this was made.
    /// Known only where there is no pidfd.
    pub(crate) fn is_own_child(&self) -> bool {
        self.child_of == Some(std::process::id())
    }

    /// What `/proc` tells of this very process.
    ///
    /// # Errors
    /// `NotFound` once it is reaped.
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        let stat = proc::stat(self.id.pid)?;
        self.look_was_right(|| self.is_shown_by(&stat))?;
        Ok(stat)
    }

    /// The file of its program.
    ///
    /// # Errors
    /// `NotFound` once it has ended; `PermissionDenied` for another user's.
    pub(crate) fn exe(&self) -> io::Result<PathBuf> {
        let exe = proc::exe(self.id.pid)?;
        self.look_was_right(|| proc::stat(self.id.pid).is_ok_and(|stat| self.is_shown_by(&stat)))?;
        Ok(exe)
    }

    /// Whether `stat`, just read by its number, is of this process.
    fn is_shown_by(&self, stat: &Stat) -> bool {
        match self.id.start_ticks {
            // Nothing to compare: a child of ours has its number until it is
            // reaped.
            0 => self.is_own_child() && wait::peek_child(self.id.pid).is_ok(),
            _ => self.id.is(stat),
        }
    }

    /// Fails if what was just looked up by number may be another's: the process
    /// must still have its number now, so it had it then.
    fn look_was_right(&self, without_pidfd: impl FnOnce() -> bool) -> io::Result<()> {
        let right = match self.pidfd() {
            Some(fd) => !is_reaped(fd),
            None => without_pidfd(),
        };
        if right {
            Ok(())
        } else {
            Err(no_such_process())
        }
    }

    /// Whether it has ended and its parent knows, so that its number is free.
    pub(crate) fn is_reaped(&self) -> bool {
        match self.pidfd() {
            Some(fd) => is_reaped(fd),
            None => match self.shown() {
                Shown::Other => true,
                Shown::This(_) | Shown::Nothing(_) => {
                    self.is_own_child() && wait::peek_child(self.id.pid).is_err()
                }
            },
        }
    }

    /// What `/proc` shows of whoever has the number.
    fn shown(&self) -> Shown {
        match proc::stat(self.id.pid) {
            Ok(stat) if self.id.start_ticks > 0 && !self.id.is(&stat) => Shown::Other,
            Ok(stat) => Shown::This(stat),
            // A child of ours may merely not be shown.
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.is_own_child() => Shown::Other,
            Err(error) => Shown::Nothing(error),
        }
    }

    /// How it ended, if it has; who may not be told learns that it has ended.
    pub(crate) fn ending(&self) -> Ending {
        if !self.has_exited() {
            return Ending::Runs;
        }
        if let Some(Some(status)) = self.told.get() {
            return Ending::Known(wait::of_status(*status));
        }
        // [1] A child of ours that nobody has reaped tells without being reaped.
        let peeked = match self.pidfd() {
            Some(fd) => wait::peek(fd),
            None if self.is_own_child() => wait::peek_child(self.id.pid),
            None => Err(Errno::CHILD.into()),
        };
        // By number, it may be another child's that got the number after somebody
        // reaped this one behind our back: it must be this one's still. (Where
        // nothing was known of it but its number, there is nothing to compare.)
        let its_own = || self.pidfd.is_some() || self.id.start_ticks == 0 || !self.is_reaped();
        if let Ok(Some(exit)) = peeked
            && its_own()
        {
            return Ending::Known(exit);
        }
        // [2] The kernel remembers, for those who hold a pidfd.
        if let Some(exit) = self.pidfd().and_then(wait::remembered) {
            return Ending::Known(exit);
        }
        // [3] A zombie shows its status to those who may look into it. It was
        //     still this one when it was read if it is not reaped now.
        let shown = proc::status_of_zombie(self.id.pid);
        match (shown, self.is_reaped()) {
            (Some(status), false) => Ending::Known(wait::of_status(status)),
            (None, false) => Ending::Zombie,
            // Reaped since [2] was asked.
            (_, true) => match self.pidfd().and_then(wait::remembered) {
                Some(exit) => Ending::Known(exit),
                None => Ending::Forgotten,
            },
        }
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
            child_of: Some(std::process::id()),
            told: OnceLock::new(),
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

    /// The system says that it has ended, and perhaps how.
    pub(crate) fn tell(&self, status: Option<i32>) {
        // A second time says the same.
        let _ = self.told.set(status);
    }

    /// Whether it has ended; it may be a zombie. An answer that cannot be had
    /// is "no".
    pub(crate) fn has_exited(&self) -> bool {
        if self.told.get().is_some() {
            return true;
        }
        let told = self.pidfd().map(pidfd::has_exited);
        if let Some(Ok(exited)) = told {
            return exited;
        }
        match self.shown() {
            Shown::Other => true,
            // A child that was reaped behind our back is none any more.
            _ if self.is_own_child() => !matches!(wait::peek_child(self.id.pid), Ok(None)),
            Shown::This(stat) => stat.is_gone(),
            Shown::Nothing(_) => false,
        }
    }

    /// Whether a signal may be sent to it.
    ///
    /// # Errors
    /// As [`signal`](Watched::signal), which it sends none of.
    pub(crate) fn may_signal(&self) -> io::Result<()> {
        self.send(0)
    }

    /// Sends a signal to this very process.
    ///
    /// # Errors
    /// `ESRCH` if it was reaped (a zombie takes any signal without effect),
    /// `EPERM` if it is someone else's; another if it has no pidfd and cannot be
    /// looked at, when nothing was sent.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        self.send(signal.number())
    }

    fn send(&self, signal: i32) -> io::Result<()> {
        if let Some(fd) = &self.pidfd {
            match pidfd::send(fd.as_fd(), signal) {
                // A filter that knows pidfd_open but not this call. A filter's
                // EPERM looks like a foreign process's, so it is asked again by
                // number, which decides.
                Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::NOSYS | Errno::PERM)) => {}
                answer => return answer,
            }
        }
        match self.pidfd() {
            // It had its number after it was looked up.
            Some(fd) if !is_reaped(fd) => {}
            Some(_) => return Err(no_such_process()),
            None => match self.shown() {
                Shown::Other => return Err(no_such_process()),
                Shown::This(_) => {}
                // Without /proc the number is all there is, and a child's is
                // enough.
                Shown::Nothing(_) if self.is_own_child() => {
                    wait::peek_child(self.id.pid).map_err(|_| no_such_process())?;
                }
                Shown::Nothing(error) => return Err(error),
            },
        }
        signal::kill(self.id.pid, signal)
    }
}

/// Whether the process of a pidfd was reaped. Where the descriptor does not tell,
/// the null signal does: it is delivered to a zombie and not to nobody. Who may
/// not send it is told the number, which nobody has any more. Where that cannot
/// be read either, whoever has ended and is no child of ours counts as reaped.
fn is_reaped(pidfd: BorrowedFd<'_>) -> bool {
    match pidfd::life(pidfd) {
        Ok(Life::Runs) | Err(_) => false,
        Ok(Life::Reaped) => true,
        Ok(Life::Ended) if pidfd::tells_of_reaps(pidfd) => false,
        Ok(Life::Ended) => match pidfd::send(pidfd, 0) {
            Ok(()) => false,
            Err(e) if Errno::from_io_error(&e) == Some(Errno::SRCH) => true,
            Err(_) => match pidfd::number(pidfd) {
                Ok(number) => number.is_none(),
                Err(_) => wait::peek(pidfd).is_err(),
            },
        },
    }
}

/// Whether processes can be looked at, be it that some are hidden.
fn is_proc_there() -> bool {
    proc::stat(rustix::process::getpid().as_raw_pid()).is_ok()
}

fn unwatchable() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "neither pidfd_open(2) nor /proc is there, so a stranger could take its number unnoticed",
    )
}

fn no_such_process() -> io::Error {
    Errno::SRCH.into()
}
