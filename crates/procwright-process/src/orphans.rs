//! Orphaned descendants, for a process that exists to run one program.

use std::io;

use crate::holders::Holder;
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
/// the run is over and its program was reaped. None where `/proc` is not readable.
pub fn orphans() -> Vec<Holder> {
    let alive = |pid: i32| {
        let stat = proc::stat(pid).ok().filter(|stat| !stat.is_gone())?;
        let name = stat.name.to_string();
        (!watchdog::is_watchdog(pid)).then_some(Holder { pid, name })
    };
    sys::children().into_iter().filter_map(alive).collect()
}

/// Reaps every child that has ended but `main`, whose status is the run's, and
/// returns how many there were. Never waits; to be called after SIGCHLD.
///
/// All children means all, whoever started them.
pub fn reap_orphans(main: i32) -> usize {
    sys::reap_ended(main)
}
