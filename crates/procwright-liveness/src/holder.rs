//! The process that holds a word: its identity, and finding it from here.

use std::os::fd::AsFd;

use procwright_os::{pidfd, proc};
use procwright_process::{Id, Process, ProcessError};

/// The identity of a process, as it writes itself down for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderId {
    /// Number, in the pid namespace below.
    pub pid: i32,
    /// Inode in pidfs, none before Linux 6.9.
    pub inode: Option<u64>,
    /// Start in clock ticks since boot, 0 if not known.
    pub start_ticks: u64,
    /// Inode of the pid namespace, none if not known.
    pub namespace: Option<u64>,
}

impl HolderId {
    /// The identity of this process.
    pub fn ourselves() -> HolderId {
        let pid = std::process::id().cast_signed();
        let pidfd = pidfd::open(pid).ok();
        HolderId {
            pid,
            inode: pidfd.and_then(|fd| pidfd::inode(fd.as_fd())),
            start_ticks: proc::stat(pid).map_or(0, |stat| stat.start_ticks),
            namespace: proc::pid_namespace(),
        }
    }
}

/// What this process can see of a holder.
#[derive(Debug)]
pub enum HolderLookup {
    /// The process. It may be a zombie.
    Found(Process),
    /// The process has ended and was reaped.
    Gone,
    /// The number means nothing here: the holder is in another pid namespace, or
    /// nothing tells whether the process that has the number now is the holder.
    Hidden,
}

impl HolderLookup {
    /// Looks for the process of `holder`.
    pub fn find(holder: &HolderId) -> HolderLookup {
        // The namespace is compared first: a number of another namespace may be that
        // of an unrelated process here.
        let is_ours = holder.namespace.is_some() && holder.namespace == proc::pid_namespace();
        let gone = match is_ours {
            true => HolderLookup::Gone,
            false => HolderLookup::Hidden,
        };
        if let Some(inode) = holder.inode {
            let process = Id::new(holder.pid, Some(inode)).map(Process::open_id);
            match process {
                Ok(Ok(process)) => return HolderLookup::Found(process),
                Ok(Err(ProcessError::Gone(_))) => return gone,
                // This system has no inodes of processes, or no pidfds.
                Ok(Err(_)) => {}
                Err(_) => return HolderLookup::Hidden,
            }
        }
        if !is_ours || holder.start_ticks == 0 {
            return HolderLookup::Hidden;
        }
        match Process::open(holder.pid) {
            Ok(process) if has_started(&process, holder.start_ticks) => {
                HolderLookup::Found(process)
            }
            Ok(_) | Err(ProcessError::Gone(_)) => HolderLookup::Gone,
            Err(_) => HolderLookup::Hidden,
        }
    }

    pub(super) fn process(self) -> Option<Process> {
        match self {
            HolderLookup::Found(process) => Some(process),
            HolderLookup::Gone | HolderLookup::Hidden => None,
        }
    }
}

/// Whether `process` was started at that tick. Two processes with one number that
/// start within one tick (0.01 s) would be taken for one; between them the kernel
/// hands out all other numbers.
fn has_started(process: &Process, start_ticks: u64) -> bool {
    match process.proc_id().start_ticks() {
        0 => {
            // The process has an inode, which the holder could not learn of itself.
            let stat = proc::stat(process.pid());
            // A process that is still alive has had the number all the while.
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
        let holder = HolderId::ourselves();
        let seen = |change: fn(&mut HolderId)| {
            let mut changed = holder;
            change(&mut changed);
            HolderLookup::find(&changed)
        };
        assert!(matches!(seen(|_| {}), HolderLookup::Found(_)));
        assert!(matches!(seen(|o| o.inode = None), HolderLookup::Found(_)));
        assert!(matches!(seen(|o| o.inode = Some(1)), HolderLookup::Gone));
        let another_time = |o: &mut HolderId| {
            o.inode = None;
            o.start_ticks -= 1;
        };
        assert!(matches!(seen(another_time), HolderLookup::Gone));
        let elsewhere = |o: &mut HolderId| {
            o.inode = None;
            o.namespace = o.namespace.map(|namespace| namespace + 1);
        };
        assert!(matches!(seen(elsewhere), HolderLookup::Hidden));
        let elsewhere_and_gone = |o: &mut HolderId| {
            o.inode = Some(1);
            o.namespace = None;
        };
        assert!(matches!(seen(elsewhere_and_gone), HolderLookup::Hidden));
        assert!(matches!(seen(|o| o.pid = -1), HolderLookup::Hidden));
    }
}
