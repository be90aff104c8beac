//! Process groups that children of this process were put into and did not make.
//!
//! A group that a run has made tells whose its processes are only as long as nobody
//! else joins it. A child that was started with the number of another child's group
//! is there by our own doing, and so is all that it starts. What it leaves behind
//! when it ends cannot be told from what the maker of the group leaves.

use procwright_os::fork::PerProcess;
use procwright_os::sync::Mutex;
use procwright_os::{signal, wait};

#[derive(Clone, Copy, Debug)]
struct Joined {
    group: i32,
    /// None while it is being started.
    child: Option<i32>,
}

static JOINED: PerProcess<Mutex<Vec<Joined>>> = PerProcess::new();

/// Notes that a child of this process is to be started in the group of another process,
/// or which one was.
pub fn note(group: i32, child: Option<i32>) {
    let joined = JOINED.get();
    let mut joined = joined.lock();
    // An empty group is no more. One whose number was given to another meanwhile stays,
    // which is the safe mistake.
    joined.retain(|one| signal::group_exists(one.group));
    joined.push(Joined { group, child });
}

/// Whether a child of this process was started in this group and did not make it.
pub(crate) fn is_joined(group: i32) -> bool {
    JOINED.get().lock().iter().any(|one| one.group == group)
}

/// Whether this is a living or unreaped child of ours that was started in the group of
/// another.
pub(crate) fn has_joined(child: i32) -> bool {
    let is_it = |one: &Joined| one.child == Some(child);
    JOINED.get().lock().iter().any(is_it) && wait::peek_child(child).is_ok()
}
