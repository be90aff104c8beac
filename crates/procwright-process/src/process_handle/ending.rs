//! How a process ended, as far as this process may know.

use rustix::io::Errno;

use super::ProcessHandle;
use procwright_os::proc;
use procwright_os::wait::{self, RawExit};

/// How a process ended, as far as this process may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It runs.
    Runs,
    /// It ended in this way.
    Known(RawExit),
    /// It is a zombie that this process may not look into.
    Zombie,
    /// It was reaped, and the system tells its status to none but its parent.
    Forgotten,
}

impl ProcessHandle {
    /// How it ended, if it has.
    pub(crate) fn ending(&self) -> Ending {
        if !self.has_exited() {
            return Ending::Runs;
        }
        if let Some(Some(status)) = self.told.get() {
            return Ending::Known(wait::decode_status(*status));
        }
        // [1] An own child that is not reaped tells by `WNOWAIT`.
        let peeked = match self.pidfd() {
            Some(fd) => wait::peek(self.id.pid(), fd),
            None if self.is_own_child() => wait::peek_child(self.id.pid()),
            None => Err(Errno::CHILD.into()),
        };
        // A status by number may be that of another child, which got the number after
        // other code had reaped this one: the number must still be this one's. (Where
        // only the number is known there is nothing to compare.)
        let its_own = || self.pidfd.is_some() || self.id.start_ticks() == 0 || !self.is_reaped();
        if let Ok(Some(exit)) = peeked
            && its_own()
        {
            return Ending::Known(exit);
        }
        // [2] The kernel (6.15) remembers it for holders of a pidfd.
        if let Some(exit) = self.pidfd().and_then(wait::status_of_reaped) {
            return Ending::Known(exit);
        }
        // [3] A zombie shows its status in /proc to its user and to root. The reading
        //     was of this process if it is not reaped now.
        let shown = proc::status_of_zombie(self.id.pid());
        match (shown, self.is_reaped()) {
            (Some(status), false) => Ending::Known(wait::decode_status(status)),
            (None, false) => Ending::Zombie,
            // Reaped since [2].
            (_, true) => match self.pidfd().and_then(wait::status_of_reaped) {
                Some(exit) => Ending::Known(exit),
                None => Ending::Forgotten,
            },
        }
    }
}
