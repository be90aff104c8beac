//! Orphaned descendants, for a process that exists to run one program.

use std::io;

use crate::holders::Holder;
use crate::proc_id::ProcId;
use procwright_os::subreaper as sys;
use procwright_os::{proc, watchdog};

/// Makes this process the parent of every orphan among its descendants (a
/// "sub-reaper"), so that a run with [`adopts_orphans`] finds them all.
///
/// For a process that exists to run one program, such as the `procwright`
/// command, and not for a library in a host: from now on children appear here
/// that nobody started, and somebody has to reap them. That is
/// [`reap_orphans`].
///
/// # Errors
/// On systems other than Linux, and where a filter forbids it.
///
/// [`adopts_orphans`]: https://docs.rs/procwright/latest/procwright/struct.Command.html#method.adopts_orphans
#[doc(alias = "PR_SET_CHILD_SUBREAPER")]
#[doc(alias = "subreaper")]
pub fn adopt_orphans() -> io::Result<()> {
    sys::become_subreaper()
}

/// The orphans that live now: children of this process that it did not start, once
/// the run is over and its program was reaped. None if nobody can know: this system does
/// not list them.
///
/// A process that had children before it started its program, as one that came to be by
/// `exec` in a shell may have, has theirs among them: see [`has_children`].
pub fn orphans() -> Option<Vec<Holder>> {
    let alive = |pid: i32| {
        let stat = proc::stat(pid).ok().filter(|stat| !stat.is_gone())?;
        let name = stat.name.to_string();
        Some(Holder::new(pid, name, Some(ProcId::from(&stat))))
    };
    Some(children()?.into_iter().filter_map(alive).collect())
}

/// Whether this process has any child, a zombie also, but for what it has itself started
/// to look after its terminal. True where that cannot be known.
///
/// What descends from such children cannot be told from what a program leaves behind that
/// is started later: orphans of both come to this process.
pub fn has_children() -> bool {
    children().is_none_or(|all| !all.is_empty())
}

/// All children but the watchdog, zombies too; none if the system does not tell.
pub(crate) fn children() -> Option<Vec<i32>> {
    let mut all = sys::children()?;
    all.retain(|pid| !watchdog::is_watchdog(*pid));
    Some(all)
}

/// Reaps every child that has ended but `main`, whose status is the run's, and
/// returns how many there were. Never waits; to be called after SIGCHLD.
///
/// All children means all, whoever started them.
pub fn reap_orphans(main: i32) -> usize {
    sys::reap_ended(main)
}
