//! The process behind a token.

use super::cell::Owner;
use crate::process::{Id, Process, ProcessError};
use crate::sys::proc;

/// What can be seen of the holder of a token.
#[derive(Debug)]
pub(super) enum Seen {
    It(Process),
    /// It has ended, and was reaped.
    Gone,
    /// Its number means nothing here: it is one of another pid namespace, or
    /// nothing tells whether who has it now is the holder.
    Hidden,
}

impl Seen {
    pub(super) fn of(owner: &Owner) -> Seen {
        // Before the look at the number: who is in another namespace may have one
        // that somebody has here.
        let is_ours = owner.namespace.is_some() && owner.namespace == proc::pid_namespace();
        let gone = match is_ours {
            true => Seen::Gone,
            false => Seen::Hidden,
        };
        if let Some(inode) = owner.inode {
            let process = Id::new(owner.pid, Some(inode)).map(Process::open_id);
            match process {
                Ok(Ok(process)) => return Seen::It(process),
                Ok(Err(ProcessError::Gone(_))) => return gone,
                // No inodes here, or no pidfds.
                Ok(Err(_)) => {}
                Err(_) => return Seen::Hidden,
            }
        }
        if !is_ours || owner.start_ticks == 0 {
            return Seen::Hidden;
        }
        match Process::open(owner.pid) {
            Ok(process) if has_started(&process, owner.start_ticks) => Seen::It(process),
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
    use super::super::cell::Kind;
    use super::*;

    #[test]
    fn an_owner_is_told_from_who_has_its_number_later() {
        let owner = Owner::ourselves(Kind::Keeper);
        let seen = |change: fn(&mut Owner)| {
            let mut changed = owner;
            change(&mut changed);
            Seen::of(&changed)
        };
        assert!(matches!(seen(|_| {}), Seen::It(_)));
        assert!(matches!(seen(|o| o.inode = None), Seen::It(_)));
        assert!(matches!(seen(|o| o.inode = Some(1)), Seen::Gone));
        let another_time = |o: &mut Owner| {
            o.inode = None;
            o.start_ticks -= 1;
        };
        assert!(matches!(seen(another_time), Seen::Gone));
        let elsewhere = |o: &mut Owner| {
            o.inode = None;
            o.namespace = o.namespace.map(|namespace| namespace + 1);
        };
        assert!(matches!(seen(elsewhere), Seen::Hidden));
        let elsewhere_and_gone = |o: &mut Owner| {
            o.inode = Some(1);
            o.namespace = None;
        };
        assert!(matches!(seen(elsewhere_and_gone), Seen::Hidden));
        assert!(matches!(seen(|o| o.pid = -1), Seen::Hidden));
    }
}
