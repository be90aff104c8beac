//! Learning of the end of a process where its pidfd cannot be put into the caller's own
//! epoll: threads that watch in other ways.
//!
//! Each thread exists only while it has something to watch.

mod child_threads;
mod ended_keys;
mod fd_table_threads;
mod poller;
mod wait_in_thread;

use std::io;
use std::sync::{Arc, Weak};

pub(super) use ended_keys::EndedKeys;
pub(crate) use wait_in_thread::run as wait_in_thread;

use super::{Event, Mechanism};
use crate::process_handle::{NoPidfd, ProcessHandle};

/// The set to notify, and the key of its member.
///
/// Weak, because a thread with a descriptor table of its own must not be the last to
/// drop the set's descriptor, which is in the other table.
#[derive(Clone, Debug)]
struct Notify {
    ended: Weak<EndedKeys>,
    key: u64,
}

impl Notify {
    fn new(ended: &Arc<EndedKeys>, key: u64) -> Notify {
        Notify {
            ended: Arc::downgrade(ended),
            key,
        }
    }

    fn notify(&self) {
        if let Some(ended) = self.ended.upgrade() {
            ended.push(self.key);
        }
    }

    fn is_same(&self, other: &Notify) -> bool {
        self.ended.ptr_eq(&other.ended) && self.key == other.key
    }
}

/// A watch that is under way. The drop ends it.
#[derive(Debug)]
pub(super) struct FallbackWatch {
    mechanism: Mechanism,
    end: FallbackKind,
}

/// The kinds of watches. Each ends when it is dropped.
#[derive(Debug)]
enum FallbackKind {
    Table(fd_table_threads::TableWatch),
    Child(#[expect(dead_code, reason = "held to be dropped")] child_threads::ChildWatch),
    Look(#[expect(dead_code, reason = "held to be dropped")] poller::Poll),
}

impl FallbackWatch {
    const fn new(mechanism: Mechanism, end: FallbackKind) -> FallbackWatch {
        FallbackWatch { mechanism, end }
    }

    pub(super) const fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Whether it is certain that the event has come about. If not, the notified set
    /// has to look itself.
    pub(super) fn is_certain(&self) -> bool {
        matches!(&self.end, FallbackKind::Table(job) if job.is_certain())
    }
}

/// Watches `process`, of which no pidfd is to be had for the reason `why`, and reports
/// `key` to `ended` when the event has come about, or may have.
///
/// # Errors
/// When not even a thread can be had.
pub(super) fn watch(
    process: &ProcessHandle,
    why: NoPidfd,
    event: Event,
    ended: &Arc<EndedKeys>,
    key: u64,
) -> io::Result<FallbackWatch> {
    let notify = Notify::new(ended, key);
    if why == NoPidfd::Now
        && let Some(job) = fd_table_threads::watch(process, event, &notify)
    {
        return Ok(FallbackWatch::new(
            Mechanism::OwnTable,
            FallbackKind::Table(job),
        ));
    }
    // A wait for a child does not tell of a reap by other code.
    if event == Event::Exited
        && process.is_own_child()
        && let Some(job) = child_threads::watch(process.id().pid(), &notify)
    {
        return Ok(FallbackWatch::new(
            Mechanism::ChildThread,
            FallbackKind::Child(job),
        ));
    }
    poll(process.by_number(), event, notify)
}

/// Polls whether a process that has ended is reaped, on systems that do not tell of it.
///
/// # Errors
/// When no descriptor or no thread can be had.
pub(super) fn watch_reap(
    process: &ProcessHandle,
    ended: &Arc<EndedKeys>,
    key: u64,
) -> io::Result<FallbackWatch> {
    let notify = Notify::new(ended, key);
    poll(process.duplicate()?, Event::Reaped, notify)
}

fn poll(process: ProcessHandle, event: Event, notify: Notify) -> io::Result<FallbackWatch> {
    let job = poller::watch(process, event, notify)?;
    Ok(FallbackWatch::new(
        Mechanism::Polling,
        FallbackKind::Look(job),
    ))
}
