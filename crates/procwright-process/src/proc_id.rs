//! The identity of a process: a name that outlives the reuse of its number.

#[cfg(test)]
use std::io;

#[cfg(test)]
use procwright_os::proc;
use procwright_os::proc::ProcStat;

/// The identity of one process of this boot, also after its number was given to
/// another.
///
/// A number alone means the process that has it now. Number and start time name one
/// process: the kernel hands out all other numbers before it repeats one, which no
/// machine does within one clock tick. The pidfs inode, where there is one (Linux
/// 6.9), is never repeated.
#[derive(Clone, Copy, Debug)]
pub struct ProcId {
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
    pub const fn unread(pid: i32, not_before_ticks: u64) -> ProcId {
        ProcId {
            pid,
            start_ticks: not_before_ticks,
            inode: None,
        }
    }

    /// The identity that was noted elsewhere, by its parts.
    pub(crate) const fn noted(pid: i32, start_ticks: u64, inode: Option<u64>) -> ProcId {
        ProcId {
            pid,
            start_ticks,
            inode,
        }
    }

    /// The identity with this inode in pidfs, if there is one.
    pub(crate) const fn with_inode(self, inode: Option<u64>) -> ProcId {
        ProcId { inode, ..self }
    }

    /// The number.
    pub(crate) const fn pid(&self) -> i32 {
        self.pid
    }

    /// The inode in pidfs, where the process has one.
    pub(crate) const fn inode(&self) -> Option<u64> {
        self.inode
    }

    /// The start, in clock ticks since boot.
    pub const fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Whether `stat` was read of this process.
    pub(crate) fn is(&self, stat: &ProcStat) -> bool {
        self.pid == stat.pid && self.start_ticks == stat.start_ticks
    }
}

impl From<&ProcStat> for ProcId {
    fn from(stat: &ProcStat) -> ProcId {
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
            // No two processes have one inode. The start is not compared: that of an
            // own child is not read.
            (Some(a), Some(b)) => a == b,
            // One of them was made where no inode could be had.
            _ => self.start_ticks == other.start_ticks,
        };
        same && self.pid == other.pid
    }
}

impl Eq for ProcId {}
