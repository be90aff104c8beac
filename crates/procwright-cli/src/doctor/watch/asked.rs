//! The processes that were asked about by their numbers, each as long as it lives.

use std::os::fd::BorrowedFd;

use procwright::Process;

/// Those who were asked about.
#[derive(Debug)]
pub(super) struct Asked {
    named: Vec<Named>,
    /// True if no number was given: all processes of this user are meant, whoever that is at
    /// each look.
    all: bool,
}

#[derive(Debug)]
struct Named {
    pid: i32,
    /// `None` where the system gives no handle: then whoever has the number is meant.
    process: Option<Process>,
}

impl Named {
    fn is_alive(&self) -> bool {
        self.process.as_ref().is_none_or(Process::is_alive)
    }
}

impl Asked {
    /// Takes hold of these processes. The first look tells of those that are not there.
    pub(super) fn open(pids: &[i32]) -> Asked {
        let named = pids.iter().map(|&pid| Named {
            pid,
            process: Process::open(pid).ok(),
        });
        Asked {
            named: named.collect(),
            all: pids.is_empty(),
        }
    }

    /// The numbers to look at now: those of who is alive. Who has ended is forgotten, since the
    /// number may be another's by now. `None` if all of them have.
    pub(super) fn alive(&mut self) -> Option<Vec<i32>> {
        self.named.retain(Named::is_alive);
        match self.named.is_empty() && !self.all {
            true => None,
            false => Some(self.named.iter().map(|named| named.pid).collect()),
        }
    }

    /// Returns whether somebody of these numbers has ended since they were [`alive`](Asked::alive).
    pub(super) fn has_changed(&self) -> bool {
        !self.named.iter().all(Named::is_alive)
    }

    /// Descriptors that become readable when one of them has ended.
    pub(super) fn ends(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let processes = self.named.iter().filter_map(|named| named.process.as_ref());
        processes.filter_map(Process::pidfd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn who_has_ended_is_forgotten() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (pid, own) = (child.id().cast_signed(), std::process::id().cast_signed());
        let mut asked = Asked::open(&[pid, own]);
        let mut alone = Asked::open(&[pid]);
        assert_eq!(asked.alive(), Some(vec![pid, own]));
        assert_eq!(asked.ends().count(), 2);
        assert!(!asked.has_changed());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(asked.has_changed());
        assert_eq!(asked.alive(), Some(vec![own]));
        assert_eq!(alone.alive(), None);
        assert_eq!(Asked::open(&[]).alive(), Some(Vec::new()));
    }
}
