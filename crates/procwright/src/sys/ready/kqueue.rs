//! macOS and the BSDs: a set of descriptors and processes on a kqueue.
//!
//! Descriptors are level-triggered, as with epoll. Processes are watched by
//! number with `NOTE_EXIT`, and that has traps:
//!
//! 1. Who is registered after its end may be refused with `ESRCH` though it is a
//!    zombie yet (macOS, NetBSD), be told at once (FreeBSD), or be accepted and
//!    never told, since the note that would have told was sent before (seen on
//!    macOS by bun). So every registration is followed by one look.
//! 2. The number may be another's by then. What is registered is whoever has it,
//!    for good: so the same look, at who was meant, settles that too.
//! 3. There is one knote for a number. A second registration replaces the first
//!    and does not add to it, and so does one of a later process of the same
//!    number, with the first one's end untold in the queue.
//! 4. `NOTE_EXIT` comes before the process is a zombie: `waitpid` with `WNOHANG`
//!    may deny its end for a moment (libuv, trio and Chromium wait in `waitpid`
//!    without it). Not done here, for a wait with a deadline must not be held up
//!    by a process that is stuck on its way out. What is told has ended; who asks
//!    the system once more must not believe a "no".
//! 5. On macOS the status is for those who may signal the process; anyone else is
//!    refused the whole registration, and so asks for it without.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{BATCH, On};
use crate::time::Deadline;

/// The few calls that all of this stands on.
pub(crate) trait Kernel {
    /// Makes one change and takes nothing out of the queue.
    ///
    /// One at a time and with no room for events, since then a failure is the
    /// call's own. With room it would come as an event (`EV_ERROR`), and where
    /// `EV_RECEIPT` is not known a success would take somebody's end out of the
    /// queue in its stead.
    fn change(&self, change: Change) -> io::Result<()>;

    /// Waits for at most `timeout` and tells what has happened, at most `max`
    /// things.
    fn wait(
        &self,
        max: usize,
        timeout: Option<Duration>,
        tell: &mut dyn FnMut(Told),
    ) -> io::Result<()>;
}

/// A change to what the kernel watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Tells of the descriptor for as long as it can be read from.
    Add(RawFd),
    /// Tells of it when something happens to it (`EV_CLEAR`).
    AddEdge(RawFd),
    Remove(RawFd),
    /// Tells of the descriptor for as long as it can be written to.
    AddWrite(RawFd),
    RemoveWrite(RawFd),
    /// Tells once that the process has ended; with its status, if `status`.
    AddProcess {
        pid: i32,
        status: bool,
    },
    RemoveProcess(i32),
    /// Makes the queue readable until the next look.
    Ring,
}

/// What the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Fd {
        fd: RawFd,
        hung_up: bool,
    },
    /// It has ended, and is watched no more.
    Ended {
        pid: i32,
        status: Option<i32>,
    },
    /// It could be watched no longer.
    Lost {
        pid: i32,
        errno: i32,
    },
    Ring,
}

/// A set on a kqueue.
#[derive(Debug)]
pub(crate) struct Kqueue<K> {
    kernel: K,
    /// Held while something is registered, so that what comes of it at once finds
    /// its key; not while anybody sleeps.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    fds: BTreeMap<RawFd, (u64, On)>,
    /// By number, each with one knote.
    processes: BTreeMap<i32, Watch>,
    /// Ended before they could be watched, and not told yet.
    over: VecDeque<u64>,
    statuses: BTreeMap<u64, i32>,
    /// Why somebody is watched no more, until a wait that has no keys to tell.
    lost: Option<io::Error>,
}

#[derive(Debug)]
struct Watch {
    birth: u64,
    keys: Vec<u64>,
}

impl<K: Kernel> Kqueue<K> {
    pub(crate) fn on(kernel: K) -> Kqueue<K> {
        Kqueue {
            kernel,
            state: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn kernel(&self) -> &K {
        &self.kernel
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in it is half done when a panic passes through.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>, key: u64, on: On) -> io::Result<()> {
        let fd = fd.as_raw_fd();
        let mut state = self.state();
        if state.fds.contains_key(&fd) {
            // The kernel would take it for a change.
            return Err(Errno::EXIST.into());
        }
        self.kernel.change(match on {
            On::Read => Change::Add(fd),
            On::Write => Change::AddWrite(fd),
            // There is no filter for a hang-up alone: EVFILT_READ tells of it
            // with EV_EOF, and of all that arrives before. NOTE_LOWAT would not
            // spare us that: pipes of FreeBSD ignore it, and sockets take no
            // more than their buffer holds, which a peer can fill. So what
            // arrives wakes us up, once and not for as long as it lies unread.
            On::HangUp => Change::AddEdge(fd),
        })?;
        state.fds.insert(fd, (key, on));
        Ok(())
    }

    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        let fd = fd.as_raw_fd();
        if let Some((_, on)) = self.state().fds.remove(&fd) {
            let _ = self.kernel.change(match on {
                On::Write => Change::RemoveWrite(fd),
                On::Read | On::HangUp => Change::Remove(fd),
            });
        }
    }

    pub(crate) fn add_process(
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
            // Two of one number, and this one is alive: so the other is not. Its
            // knote must go, or its end, untold as yet, would be taken for that
            // of this one.
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
                state.processes.insert(pid, Watch { birth, keys });
            }
            // Trap 1: it was there when it was named, so it has ended.
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

    /// These have ended; the kernel will not say so.
    fn over(&self, state: &mut State, keys: impl IntoIterator<Item = u64>) {
        state.over.extend(keys);
        // For those who wait for the descriptor. If it cannot be done, a wait
        // hands them out nevertheless.
        let _ = self.kernel.change(Change::Ring);
    }

    pub(crate) fn remove_process(&self, pid: i32, key: u64) -> Option<i32> {
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

    pub(crate) fn wait(&self, keys: &mut Vec<u64>, deadline: Deadline) -> io::Result<()> {
        let before = keys.len();
        loop {
            let mere_look = self.hand_over(keys);
            let now = Instant::now();
            let timeout = if mere_look {
                Some(Duration::ZERO)
            } else {
                // Of nanoseconds: nothing is rounded, so nothing wakes early and
                // spins for the rest of its last millisecond.
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
            // As of before the look: a deadline that came meanwhile is looked at
            // once more.
            if deadline.reached(now) {
                return Ok(());
            }
        }
    }

    /// Tells who was over from the start; whether there is anything to return
    /// for.
    fn hand_over(&self, keys: &mut Vec<u64>) -> bool {
        let mut state = self.state();
        let n = state.over.len().min(BATCH);
        keys.extend(state.over.drain(..n));
        if !state.over.is_empty() {
            // Another thread's wait may have taken the ring for all of them.
            let _ = self.kernel.change(Change::Ring);
        }
        n > 0 || state.lost.is_some()
    }

    fn note(&self, told: Told, keys: &mut Vec<u64>) {
        let mut guard = self.state();
        let state = &mut *guard;
        match told {
            Told::Fd { fd, hung_up } => match state.fds.get_mut(&fd) {
                Some((_, On::HangUp)) if !hung_up => {}
                Some((key, on)) => {
                    keys.push(*key);
                    if *on == On::HangUp {
                        // An edge is told once, a hang-up lasts: from here on
                        // the level will do. Only a knote made anew changes its
                        // kind. A failure costs the repetition, no more.
                        *on = On::Read;
                        let _ = self.kernel.change(Change::Remove(fd));
                        let _ = self.kernel.change(Change::Add(fd));
                    }
                }
                // Removed since.
                None => {}
            },
            Told::Ended { pid, status } => {
                if let Some(watch) = state.processes.remove(&pid) {
                    if let Some(status) = status {
                        let each = watch.keys.iter().map(|key| (*key, status));
                        state.statuses.extend(each);
                    }
                    keys.extend(watch.keys);
                }
            }
            Told::Lost { pid, errno } => {
                if let Some(watch) = state.processes.remove(&pid) {
                    if errno == Errno::SRCH.raw_os_error() {
                        keys.extend(watch.keys);
                    } else {
                        state.lost = Some(io::Error::from_raw_os_error(errno));
                    }
                }
            }
            Told::Ring => {}
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
