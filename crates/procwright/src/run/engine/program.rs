//! The program of a run: its process, and the pipes that it was given.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::child::ChildProcess;
use procwright_os::proc;
use procwright_process::holders::RunPipe;
use procwright_process::proc_id::ProcId;

pub(super) struct Program {
    pub(super) running: ChildProcess,
    pub(super) pipes: Vec<RunPipe>,
    /// Time of the start in the unit of `/proc`: no process of the run is older.
    pub(super) started_ticks: u64,
    /// Time at which its end was seen. The program stays a zombie until the run is
    /// over, so that its pid and group keep meaning it while others are stopped.
    pub(super) exited_at: Option<Instant>,
}

impl Program {
    pub(super) fn has_exited(&self) -> bool {
        self.exited_at.is_some()
    }

    /// Readable once the program has ended; none when that was seen.
    pub(super) fn awaited_fd(&self) -> Option<BorrowedFd<'_>> {
        self.running.pidfd().filter(|_| !self.has_exited())
    }

    /// Identity of the process that the program is or was. Where the host ignores SIGCHLD or
    /// reaps what it did not start, the number may be a stranger's by now, and
    /// the process that is named here gets killed.
    pub(super) fn identity(&self) -> ProcId {
        let pid = self.running.pid();
        let gone = ProcId::unread(pid, self.started_ticks);
        let stat = proc::stat(pid);
        // Read first and asked second: it held its number when it was read.
        if !self.running.has_exited() {
            return stat.map_or(gone, |stat| ProcId::from(&stat));
        }
        // Ended and not reaped, it is a zombie.
        match proc::stat(pid) {
            Ok(stat) if stat.is_gone() => ProcId::from(&stat),
            _ => gone,
        }
    }
}
