//! macOS and the BSDs: a set of descriptors and processes on a kqueue.
//!
//! Descriptors are level-triggered, as with epoll. Processes are watched by
//! number with `NOTE_EXIT`, and that has traps:
//!
//! 1. A process that is registered after its end may be refused with `ESRCH` though
//!    it is a zombie yet (macOS, NetBSD), be told at once (FreeBSD), or be accepted
//!    and never told, since the note that would have told was sent before (seen on
//!    macOS by bun). So every registration is followed by one check.
//! 2. The number may be another's by then, and the process that has it is registered,
//!    for good: the same check, of the process that was meant, settles that too.
//! 3. There is one knote for a number. A second registration replaces the first
//!    and does not add to it, and so does one of a later process of the same
//!    number, with the first one's end untold in the queue.
//! 4. `NOTE_EXIT` comes before the process is a zombie: `waitpid` with `WNOHANG`
//!    may deny its end for a moment (libuv, trio and Chromium wait in `waitpid`
//!    without it). Not done here, for a wait with a deadline must not be held up
//!    by a process that is stuck on its way out. A process that is told of has
//!    ended; a caller that asks the system once more must not believe a "no".
//! 5. On macOS the status is for callers that may signal the process; others are
//!    refused the whole registration, and so ask for it without.
#![allow(unreachable_pub, reason = "public where there is a kqueue")]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{BATCH, Interest};
use crate::sync::{Mutex, MutexGuard};
use crate::time::Deadline;

/// The system calls that the set stands on; a test has others.
pub trait KqueueCalls {
    /// Makes one change and takes nothing out of the queue.
    ///
    /// One change at a time and with no room for events, since then a failure is the
    /// call's own. With room it would come as an event (`EV_ERROR`), and where
    /// `EV_RECEIPT` is not known a success would take the end of a process out of the
    /// queue in its stead.
    fn change(&self, change: Change) -> io::Result<()>;

    /// Waits for at most `timeout` and passes on at most `max` events.
    fn wait(
        &self,
        max: usize,
        timeout: Option<Duration>,
        tell: &mut dyn FnMut(KernelEvent),
    ) -> io::Result<()>;
}

/// A change to what the kernel watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Change {
    /// Watches the descriptor for as long as it can be read from.
    Add(RawFd),
    /// Watches it for changes (`EV_CLEAR`).
    AddEdge(RawFd),
    /// Watches the descriptor no more.
    Remove(RawFd),
    /// Watches the descriptor for as long as it can be written to.
    AddWrite(RawFd),
    /// Watches the descriptor for writing no more.
    RemoveWrite(RawFd),
    /// Watches for the end of the process, told once; with its status, if `status`.
    AddProcess { pid: i32, status: bool },
    /// Watches the process no more.
    RemoveProcess(i32),
    /// Makes the queue readable until the next wait.
    Ring,
}

/// An event that the kernel reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum KernelEvent {
    /// A descriptor is ready.
    Fd { fd: RawFd, hung_up: bool },
    /// The process has ended, and is watched no more.
    Ended { pid: i32, status: Option<i32> },
    /// The process could be watched no longer.
    Lost { pid: i32, errno: i32 },
    /// The queue was made readable by hand.
    Ring,
}

/// A set on a kqueue.
#[derive(Debug)]
pub struct Kqueue<K> {
    kernel: K,
    /// Locked while a registration is made, so that an event that comes of it at once
    /// finds its key; not while a thread sleeps.
    state: Mutex<KqueueState>,
}

/// Descriptors and processes that a set watches, and events that it has not told yet.
#[derive(Debug, Default)]
struct KqueueState {
    fds: BTreeMap<RawFd, (u64, Interest)>,
    /// Processes by number, each with one knote.
    processes: BTreeMap<i32, Knote>,
    /// Keys of processes that ended before they could be watched, not told yet.
    over: VecDeque<u64>,
    /// Statuses by key.
    statuses: BTreeMap<u64, i32>,
    /// Error that ended the watch of a process, until a wait that has no keys to tell.
    lost: Option<io::Error>,
}

/// A process that is watched.
#[derive(Debug)]
struct Knote {
    birth: u64,
    keys: Vec<u64>,
}

impl<K: KqueueCalls> Kqueue<K> {
    /// An empty set on a kqueue.
    pub fn on(kernel: K) -> Kqueue<K> {
        Kqueue {
            kernel,
            state: Mutex::default(),
        }
    }

    /// The system calls, for the test.
    #[cfg(test)]
    pub fn kernel(&self) -> &K {
        &self.kernel
    }

    fn state(&self) -> MutexGuard<'_, KqueueState> {
        // Nothing in it is half done when a panic passes through.
        self.state.lock()
    }

    /// Watches a descriptor, which the caller removes before it closes it.
    ///
    /// # Errors
    /// `AlreadyExists` if that very descriptor is in the set; others of `kevent(2)`.
    #[doc(alias = "kevent")]
    pub fn add(&self, fd: BorrowedFd<'_>, key: u64, on: Interest) -> io::Result<()> {
        let fd = fd.as_raw_fd();
        let mut state = self.state();
        if state.fds.contains_key(&fd) {
            // The kernel would take it for a change.
            return Err(Errno::EXIST.into());
        }
        self.kernel.change(match on {
            Interest::Read => Change::Add(fd),
            Interest::Write => Change::AddWrite(fd),
            // No filter exists for a hang-up alone: EVFILT_READ tells of it with EV_EOF, and
            // of all that arrives before. NOTE_LOWAT would not spare us that: pipes of
            // FreeBSD ignore it, and sockets take no more than their buffer holds, which a
            // peer can fill. So what arrives wakes us up, once and not for as long as it
            // lies unread.
            Interest::HangUp => Change::AddEdge(fd),
        })?;
        state.fds.insert(fd, (key, on));
        Ok(())
    }

    /// Watches a descriptor no more.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        let fd = fd.as_raw_fd();
        if let Some((_, on)) = self.state().fds.remove(&fd) {
            let _ = self.kernel.change(match on {
                Interest::Write => Change::RemoveWrite(fd),
                Interest::Read | Interest::HangUp => Change::Remove(fd),
            });
        }
    }

    /// Watches the process called `pid` that was started at `birth`; `has_ended` tells
    /// whether that very one has ended.
    ///
    /// # Errors
    /// Those of `kevent(2)`.
    #[doc(alias = "NOTE_EXIT")]
    pub fn add_process(
        &self,
        pid: i32,
        birth: u64,
        key: u64,
        has_ended: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let mut state = self.state();
        match state.processes.get_mut(&pid) {
            // Trap 3. The knote was registered in its lifetime, so it will tell.
            Some(watch) if watch.birth == birth => {
                watch.keys.push(key);
                return Ok(());
            }
            Some(_) if has_ended() => {
                self.over(&mut state, [key]);
                return Ok(());
            }
            // Two processes of one number, and the new one is alive: so the old one is not.
            // Its knote must go, or its end, untold as yet, would be taken for that of the
            // new one.
            Some(_) => {
                let _ = self.kernel.change(Change::RemoveProcess(pid));
                let keys = state.processes.remove(&pid).map(|watch| watch.keys);
                self.over(&mut state, keys.into_iter().flatten());
            }
            None => {}
        }
        match self.register(pid) {
            Ok(()) if has_ended() => {
                // Traps 1 and 2. Also takes back what was told since.
                let _ = self.kernel.change(Change::RemoveProcess(pid));
                self.over(&mut state, [key]);
            }
            Ok(()) => {
                let keys = vec![key];
                state.processes.insert(pid, Knote { birth, keys });
            }
            // Trap 1: the process was there when it was named, so it has ended.
            Err(e) if Errno::from_io_error(&e) == Some(Errno::SRCH) => {
                self.over(&mut state, [key]);
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn register(&self, pid: i32) -> io::Result<()> {
        let with = |status| self.kernel.change(Change::AddProcess { pid, status });
        match with(true) {
            // Trap 5.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => with(false),
            answer => answer,
        }
    }

    /// Notes keys of processes that have ended without a word of the kernel.
    fn over(&self, state: &mut KqueueState, keys: impl IntoIterator<Item = u64>) {
        state.over.extend(keys);
        // Wakes waiters on the descriptor. If that cannot be done, a wait hands the keys
        // out nevertheless.
        let _ = self.kernel.change(Change::Ring);
    }

    /// Watches a process no more; its status, if the system told it.
    pub fn remove_process(&self, pid: i32, key: u64) -> Option<i32> {
        let mut state = self.state();
        if let Some(watch) = state.processes.get_mut(&pid) {
            watch.keys.retain(|one| *one != key);
            if watch.keys.is_empty() {
                state.processes.remove(&pid);
                let _ = self.kernel.change(Change::RemoveProcess(pid));
            }
        }
        state.over.retain(|one| *one != key);
        state.statuses.remove(&key)
    }

    /// Sleeps until the set is ready or the deadline has come, and appends the keys of
    /// what is ready, [`BATCH`] at most.
    ///
    /// # Errors
    /// Those of `kevent(2)` but `EINTR`; that of a process that could be watched no
    /// longer.
    #[doc(alias = "kevent")]
    pub fn wait(&self, keys: &mut Vec<u64>, deadline: Deadline) -> io::Result<()> {
        let before = keys.len();
        loop {
            let mere_look = self.drain_ended(keys);
            let now = Instant::now();
            let timeout = if mere_look {
                Some(Duration::ZERO)
            } else {
                // Nanoseconds: nothing is rounded, so nothing wakes early and spins for the rest
                // of its last millisecond.
                deadline.remaining(now).map(|left| left.min(LONGEST))
            };
            let room = BATCH.saturating_sub(keys.len() - before);
            if room > 0 {
                let mut tell = |told| self.note(told, keys);
                match self.kernel.wait(room, timeout, &mut tell) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    answer => answer?,
                }
            }
            if keys.len() > before {
                return Ok(());
            }
            if let Some(e) = self.state().lost.take() {
                return Err(e);
            }
            // `now` is from before the wait: a deadline that came meanwhile gets one more
            // check.
            if deadline.reached(now) {
                return Ok(());
            }
        }
    }

    /// Hands out the keys of processes that were over from the start; true if there is
    /// anything to return for.
    fn drain_ended(&self, keys: &mut Vec<u64>) -> bool {
        let mut state = self.state();
        let n = state.over.len().min(BATCH);
        keys.extend(state.over.drain(..n));
        if !state.over.is_empty() {
            // Another thread's wait may have taken the ring for all of them.
            let _ = self.kernel.change(Change::Ring);
        }
        n > 0 || state.lost.is_some()
    }

    fn note(&self, told: KernelEvent, keys: &mut Vec<u64>) {
        let mut guard = self.state();
        let state = &mut *guard;
        match told {
            KernelEvent::Fd { fd, hung_up } => match state.fds.get_mut(&fd) {
                Some((_, Interest::HangUp)) if !hung_up => {}
                Some((key, on)) => {
                    keys.push(*key);
                    if *on == Interest::HangUp {
                        // An edge is told once, a hang-up lasts: from here on the level will
                        // do. Only a knote made anew changes its kind. A failure costs the
                        // repetition, no more.
                        *on = Interest::Read;
                        let _ = self.kernel.change(Change::Remove(fd));
                        let _ = self.kernel.change(Change::Add(fd));
                    }
                }
                // Removed since.
                None => {}
            },
            KernelEvent::Ended { pid, status } => {
                if let Some(watch) = state.processes.remove(&pid) {
                    if let Some(status) = status {
                        let each = watch.keys.iter().map(|key| (*key, status));
                        state.statuses.extend(each);
                    }
                    keys.extend(watch.keys);
                }
            }
            KernelEvent::Lost { pid, errno } => {
                if let Some(watch) = state.processes.remove(&pid) {
                    if errno == Errno::SRCH.raw_os_error() {
                        keys.extend(watch.keys);
                    } else {
                        state.lost = Some(io::Error::from_raw_os_error(errno));
                    }
                }
            }
            KernelEvent::Ring => {}
        }
    }
}

/// The longest sleep at a time: macOS and NetBSD refuse more than 100,000,000 s.
pub(crate) const LONGEST: Duration = Duration::from_secs(31_536_000);

impl<K: AsFd> AsFd for Kqueue<K> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.kernel.as_fd()
    }
}
