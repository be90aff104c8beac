//! One process that is known to belong to a run.

use crate::process_handle::ProcessHandle;
use procwright_os::pidfd;
use procwright_os::proc::Comm;

/// A process of a run, held so that its number can be told from that of a later one.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) handle: ProcessHandle,
    pub(crate) name: Comm,
    pub(crate) state: char,
    /// It has ended, reaped or not.
    pub(crate) gone: bool,
    /// Forks alone lead from the root to it. One that was found by a pipe or by its
    /// group may have come there in another way.
    pub(crate) descends: bool,
}

impl Member {
    pub(crate) fn pid(&self) -> i32 {
        self.handle.id().pid()
    }

    /// Whether its number has meant it, its group and its session up to now, and
    /// nobody else: it is not reaped, or its group still has members. The kernel
    /// gives a number away only when no process, zombies included, has it as its own
    /// number, its group or its session.
    pub(crate) fn keeps_number(&self) -> bool {
        !self.handle.is_reaped() || self.group_lives()
    }

    /// Whether a group that it leads or led has members that we may signal, as the
    /// kernel tells by its own object, not by the number (Linux 6.9). False where that
    /// cannot be asked.
    pub(crate) fn group_lives(&self) -> bool {
        let asked = self.handle.pidfd().map(|fd| pidfd::send_group(fd, 0));
        matches!(asked, Some(Ok(())))
    }
}
