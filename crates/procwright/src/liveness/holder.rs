//! The process behind a word.

use std::os::fd::AsFd;

use crate::process::{Id, Process, ProcessError};
use crate::sys::{pidfd, proc};

/// A process, as it writes itself down for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pid: i32,
    /// None where processes have no inodes.
    pub(crate) inode: Option<u64>,
    /// In clock ticks since boot, 0 if it is not known.
    pub(crate) start_ticks: u64,
    /// Where its number is its number.
    pub(crate) namespace: Option<u64>,
}

impl Holder {
    pub(crate) fn ourselves() -> Holder {
        let pid = std::process::id().cast_signed();
        let pidfd = pidfd::open(pid).ok();
        Holder {
            pid,
            inode: pidfd.and_then(|fd| pidfd::inode(fd.as_fd())),
            start_ticks: proc::stat(pid).map_or(0, |stat| stat.start_ticks),
            namespace: proc::pid_namespace(),
        }
    }
}

/// What can be seen of it.
#[derive(Debug)]
pub(crate) enum Seen {
    It(Process),
    /// It has ended, and was reaped.
    Gone,
    /// Its number means nothing here: it is one of another pid namespace, or
    /// nothing tells whether who has it now is the holder.
    Hidden,
}

impl Seen {
    pub(crate) fn of(holder: &Holder) -> Seen {
        // Before the look at the number: who is in another namespace may have one
        // that somebody has here.
        let is_ours = holder.namespace.is_some() && holder.namespace == proc::pid_namespace();
        let gone = match is_ours {
            true => Seen::Gone,
            false => Seen::Hidden,
        };
        if let Some(inode) = holder.inode {
            let process = Id::new(holder.pid, Some(inode)).map(Process::open_id);
            match process {
                Ok(Ok(process)) => return Seen::It(process),
                Ok(Err(ProcessError::Gone(_))) => return gone,
                // No inodes here, or no pidfds.
                Ok(Err(_)) => {}
                Err(_) => return Seen::Hidden,
            }
        }
        if !is_ours || holder.start_ticks == 0 {
            return Seen::Hidden;
        }
        match Process::open(holder.pid) {
            Ok(process) if has_started(&process, holder.start_ticks) => Seen::It(process),
            Ok(_) | Err(ProcessError::Gone(_)) => Seen::Gone,
            Err(_) => Seen::Hidden,
        }
    }

    pub(super) fn process(self) -> Option<Process> {
        match self {
            Seen::It(process) => Some(process),
            Seen::Gone | Seen::Hidden => None,
        }
    }
}

/// Whether a process was started then. Two that had the same number one after the
/// other in the same hundredth of a second would be taken for one: between them all
/// other numbers were given out.
fn has_started(process: &Process, start_ticks: u64) -> bool {
    match process.known().start_ticks() {
        0 => {
            // It has an inode, which the other side could not learn of itself.
            let stat = proc::stat(process.pid());
            // Whoever lives still had the number all the while.
            stat.is_ok_and(|stat| stat.start_ticks == start_ticks) && process.is_alive()
        }
        known => known == start_ticks,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_told_from_who_has_its_number_later() {
        let holder = Holder::ourselves();
        let seen = |change: fn(&mut Holder)| {
            let mut changed = holder;
            change(&mut changed);
            Seen::of(&changed)
        };
        assert!(matches!(seen(|_| {}), Seen::It(_)));
        assert!(matches!(seen(|o| o.inode = None), Seen::It(_)));
        assert!(matches!(seen(|o| o.inode = Some(1)), Seen::Gone));
        let another_time = |o: &mut Holder| {
            o.inode = None;
            o.start_ticks -= 1;
        };
        assert!(matches!(seen(another_time), Seen::Gone));
        let elsewhere = |o: &mut Holder| {
            o.inode = None;
            o.namespace = o.namespace.map(|namespace| namespace + 1);
        };
        assert!(matches!(seen(elsewhere), Seen::Hidden));
        let elsewhere_and_gone = |o: &mut Holder| {
            o.inode = Some(1);
            o.namespace = None;
        };
        assert!(matches!(seen(elsewhere_and_gone), Seen::Hidden));
        assert!(matches!(seen(|o| o.pid = -1), Seen::Hidden));
    }
}
