//! How the end of a process is learned where its pidfd cannot be put into the
//! caller's own epoll: threads of ours that watch in other ways and ring.
//!
//! Each of them exists only while it has something to watch.

mod bell;
mod child;
mod errand;
mod look;
mod table;

use std::io;
use std::sync::{Arc, Weak};

pub(super) use bell::Bell;
pub(crate) use errand::run as errand;

use super::{Event, Mechanism};
use crate::ident::{NoPidfd, Watched};

/// Whom to tell, and of what.
///
/// Weak, because a thread with a descriptor table of its own must not be the
/// last to drop a bell, whose descriptor is in the other table.
#[derive(Clone, Debug)]
struct Caller {
    bell: Weak<Bell>,
    key: u64,
}

impl Caller {
    fn new(bell: &Arc<Bell>, key: u64) -> Caller {
        Caller {
            bell: Arc::downgrade(bell),
            key,
        }
    }

    fn ring(&self) {
        if let Some(bell) = self.bell.upgrade() {
            bell.ring(self.key);
        }
    }

    fn is_same(&self, other: &Caller) -> bool {
        self.bell.ptr_eq(&other.bell) && self.key == other.key
    }
}

/// A watch that is under way; dropping it ends that.
#[derive(Debug)]
pub(super) struct Job {
    mechanism: Mechanism,
    end: End,
}

/// Each ends its watch when it is dropped.
#[derive(Debug)]
enum End {
    Table(table::Job),
    Child(#[expect(dead_code, reason = "held to be dropped")] child::Job),
    Look(#[expect(dead_code, reason = "held to be dropped")] look::Job),
}

impl Job {
    const fn new(mechanism: Mechanism, end: End) -> Job {
        Job { mechanism, end }
    }

    pub(super) const fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Whether it is certain that the event has come about. If not, whoever was
    /// rung looks for himself.
    pub(super) fn is_certain(&self) -> bool {
        matches!(&self.end, End::Table(job) if job.is_certain())
    }
}

/// Watches `process`, of which no pidfd is to be had for the reason `why`, and
/// rings `bell` for `key` when the event has come about, or may have.
///
/// # Errors
/// When not even a thread can be had.
pub(super) fn watch(
    process: &Watched,
    why: NoPidfd,
    event: Event,
    bell: &Arc<Bell>,
    key: u64,
) -> io::Result<Job> {
    let caller = Caller::new(bell, key);
    if why == NoPidfd::Now
        && let Some(job) = table::watch(process, event, &caller)
    {
        return Ok(Job::new(Mechanism::OwnTable, End::Table(job)));
    }
    // A reap by somebody else is nothing that a wait for a child tells of.
    if event == Event::Exited
        && process.is_own_child()
        && let Some(job) = child::watch(process.id().pid(), &caller)
    {
        return Ok(Job::new(Mechanism::ChildThread, End::Child(job)));
    }
    look(process.by_number(), event, caller)
}

/// Looks now and then whether a process that has ended is reaped, on systems
/// that do not tell of it.
///
/// # Errors
/// When no descriptor or no thread can be had.
pub(super) fn watch_reap(process: &Watched, bell: &Arc<Bell>, key: u64) -> io::Result<Job> {
    let caller = Caller::new(bell, key);
    look(process.duplicate()?, Event::Reaped, caller)
}

fn look(process: Watched, event: Event, caller: Caller) -> io::Result<Job> {
    let job = look::watch(process, event, caller)?;
    Ok(Job::new(Mechanism::Polling, End::Look(job)))
}
