//! One thread that ends children for their limits: all those that callers hold and that
//! have a timeout, an idle timeout, a limit of output, a cancel or streams that end with the
//! program.
//!
//! The thread sleeps in one epoll instance until the nearest deadline, and wakes for what
//! happens to a child: its end, the end of its streams, a cancel. Stops are state machines
//! that it steps, so one child that takes all of its grace holds up no other. It is apart
//! from the pump, since a stop reads all of `/proc`, and the streams of other children must
//! not wait for that. The thread lives while there is such a child, and a moment longer.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::supervised::{NextLook, SupervisedChild};
use crate::drain::News;
use crate::error::{SpawnError, Step};
use procwright_os::fork::{self, PerProcess};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::ready::{Interest, ReadySet};
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::thread;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// The time that the thread stays after the last child: a caller that starts one child after
/// the other does not start as many threads.
const LINGER: Duration = Duration::from_millis(100);

/// The wake-up's key. Children are counted from 1.
const WAKE: u64 = 0;

/// What a key in the set means, beside the child.
const EXIT: u64 = 0;
const CANCEL: u64 = 1;
const STOP: u64 = 2;

fn key_of(child: u64, what: u64) -> u64 {
    child << 2 | what
}

/// The place of a child that is not started yet, with the supervisor, which does not end
/// while this is held.
#[derive(Debug)]
pub(super) struct SupervisorPlace {
    shared: Arc<SupervisorShared>,
    child: u64,
}

#[derive(Debug)]
struct SupervisorShared {
    wake: Wake,
    orders: Mutex<Orders>,
    generation: u32,
}

#[derive(Debug, Default)]
struct Orders {
    new: Vec<(u64, SupervisedChild)>,
    /// The children of which there is news.
    news: Vec<u64>,
    /// The number of the latest child.
    last_child: u64,
    /// The number of [`SupervisorPlace`]s.
    places: usize,
    has_ended: bool,
}

/// The supervisor of this process. A fork has its parent's memory and not the thread, so it
/// gets one of its own.
static SUPERVISOR: PerProcess<Mutex<Option<Arc<SupervisorShared>>>> = PerProcess::new();

fn supervisor() -> MutexGuard<'static, Option<Arc<SupervisorShared>>> {
    SUPERVISOR.get().lock()
}

impl SupervisorPlace {
    /// A place with the supervisor of this process, which is started if there is none.
    ///
    /// # Errors
    /// When no descriptor or thread can be had.
    pub(super) fn get() -> Result<SupervisorPlace, SpawnError> {
        let mut supervisor = supervisor();
        if let Some(shared) = &*supervisor
            && let Some(child) = shared.orders.lock().new_place()
        {
            let shared = Arc::clone(shared);
            return Ok(SupervisorPlace { shared, child });
        }
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let shared = Arc::new(SupervisorShared {
            wake: Wake::new().map_err(no_descriptor)?,
            orders: Mutex::new(Orders {
                last_child: 1,
                places: 1,
                ..Orders::default()
            }),
            generation: fork::generation(),
        });
        let ready = ReadySet::new().map_err(no_descriptor)?;
        let added = ready.add(shared.wake.as_fd(), WAKE, Interest::Read);
        added.map_err(no_descriptor)?;
        let theirs = Arc::clone(&shared);
        thread::spawn_quiet("procwright-supervisor", move || {
            SupervisorLoop::new(&theirs, &ready).run();
        })
        .map_err(|error| SpawnError::new(Step::Thread, "", error))?;
        *supervisor = Some(Arc::clone(&shared));
        Ok(SupervisorPlace { shared, child: 1 })
    }

    /// Has the supervisor look at the child of this place, once that is there.
    pub(super) fn news(&self) -> News {
        let shared = Arc::downgrade(&self.shared);
        let (child, generation) = (self.child, self.shared.generation);
        News::new(move || tell(&shared, generation, child))
    }

    /// A descriptor in whose place the child's own will be put.
    ///
    /// # Errors
    /// When none is left.
    pub(super) fn placeholder(&self) -> Result<OwnedFd, SpawnError> {
        let fd = self.shared.wake.as_fd().try_clone_to_owned();
        fd.map_err(|error| SpawnError::new(Step::Pipe, "", error))
    }

    /// Has the child looked after from now on.
    pub(super) fn take(self, child: SupervisedChild) {
        let mut orders = self.shared.orders.lock();
        orders.new.push((self.child, child));
        drop(orders);
        self.shared.wake.ring();
    }
}

fn tell(shared: &Weak<SupervisorShared>, generation: u32, child: u64) {
    if generation == fork::generation()
        && let Some(shared) = shared.upgrade()
    {
        shared.orders.lock().news.push(child);
        shared.wake.ring();
    }
}

impl Orders {
    /// The number of a new child, none if the thread has ended.
    fn new_place(&mut self) -> Option<u64> {
        if self.has_ended {
            return None;
        }
        self.places += 1;
        self.last_child += 1;
        Some(self.last_child)
    }
}

impl Drop for SupervisorPlace {
    fn drop(&mut self) {
        if self.shared.generation == fork::generation() {
            self.shared.orders.lock().places -= 1;
            // The thread may want to end.
            self.shared.wake.ring();
        }
    }
}

/// The state of the thread.
struct SupervisorLoop<'a> {
    shared: &'a SupervisorShared,
    ready: &'a ReadySet,
    children: HashMap<u64, Entry>,
    /// When each child is to be looked at, the nearest first.
    clock: BTreeSet<(Instant, u64)>,
}

struct Entry {
    child: SupervisedChild,
    /// Its time in the clock.
    at: Option<Instant>,
    /// Whether the descriptor of its stop is in the set.
    watches_stop: bool,
}

impl SupervisorLoop<'_> {
    fn new<'a>(shared: &'a SupervisorShared, ready: &'a ReadySet) -> SupervisorLoop<'a> {
        SupervisorLoop {
            shared,
            ready,
            children: HashMap::new(),
            clock: BTreeSet::new(),
        }
    }

    fn run(mut self) {
        let mut keys = Vec::new();
        let mut idle_until = Deadline::NEVER;
        loop {
            keys.clear();
            let next = self.clock.first().map(|(at, _)| Deadline::at(*at));
            let until = next.unwrap_or(Deadline::NEVER).min(idle_until);
            if self.ready.wait(&mut keys, until).is_err() {
                // The error is not to be expected. Deadlines are kept all the same.
                let wake = Fd::from_borrowed_fd(self.shared.wake.as_fd(), Flags::IN);
                let _ = poll::wait_one(wake, Deadline::at(Instant::now() + LINGER));
            }
            let mut due = self.take_orders(keys.contains(&WAKE));
            for &key in keys.iter().filter(|key| **key != WAKE) {
                let child = key >> 2;
                if let Some(entry) = self.children.get(&child) {
                    entry.note(self.ready, key & 3);
                    due.push(child);
                }
            }
            // The clock is looked at after what is ready: who ends in time is in time.
            let now = Instant::now();
            let late = self
                .clock
                .range(..=(now, u64::MAX))
                .map(|(_, child)| *child);
            due.extend(late);
            due.sort_unstable();
            due.dedup();
            for child in due {
                self.look(child, now);
            }
            idle_until = match self.children.is_empty() {
                false => Deadline::NEVER,
                true if idle_until == Deadline::NEVER => Deadline::at(Instant::now() + LINGER),
                true => idle_until,
            };
            if idle_until.reached(Instant::now()) {
                if try_exit(self.shared) {
                    return;
                }
                // The wake-up tells when that changes.
                idle_until = Deadline::at(Instant::now() + LINGER);
            }
        }
    }

    /// Takes new children in, and gives those of which there is news.
    fn take_orders(&mut self, has_rung: bool) -> Vec<u64> {
        if !has_rung {
            return Vec::new();
        }
        self.shared.wake.silence();
        let (new, mut due) = {
            let mut orders = self.shared.orders.lock();
            (
                std::mem::take(&mut orders.new),
                std::mem::take(&mut orders.news),
            )
        };
        for (child, supervised) in new {
            let entry = Entry::begin(self.ready, child, supervised);
            self.children.insert(child, entry);
            due.push(child);
        }
        due
    }

    /// Does what is due for a child.
    fn look(&mut self, child: u64, now: Instant) {
        let Some(entry) = self.children.get_mut(&child) else {
            return;
        };
        if let Some(at) = entry.at.take() {
            self.clock.remove(&(at, child));
        }
        let stop_was_watched = entry.watches_stop;
        if stop_was_watched && let Some(fd) = entry.child.stop_fd() {
            // The descriptor goes with the stop, which may be over in a moment.
            self.ready.remove(fd);
            entry.watches_stop = false;
        }
        match entry.child.look(now) {
            NextLook::Over => {
                if let Some(entry) = self.children.remove(&child) {
                    entry.forget(self.ready);
                }
            }
            NextLook::At(at) => {
                if let Some(fd) = entry.child.stop_fd() {
                    let added = self.ready.add(fd, key_of(child, STOP), Interest::Read);
                    entry.watches_stop = added.is_ok();
                }
                // A deadline that is past is due at once.
                entry.at = at.remaining(now).map(|left| now + left);
                if let Some(at) = entry.at {
                    self.clock.insert((at, child));
                }
            }
        }
    }
}

impl Entry {
    fn begin(ready: &ReadySet, number: u64, child: SupervisedChild) -> Entry {
        // A set that is full refuses: then the end of the streams and the deadlines are left.
        let _ = ready.add(child.pidfd(), key_of(number, EXIT), Interest::Read);
        if let Some(fd) = child.cancel_fd() {
            let _ = ready.add(fd, key_of(number, CANCEL), Interest::Read);
        }
        Entry {
            child,
            at: None,
            watches_stop: false,
        }
    }

    /// Notes what is ready.
    fn note(&self, ready: &ReadySet, what: u64) {
        // It stays readable, and was looked at once for that.
        let told = match what {
            EXIT => Some(self.child.pidfd()),
            CANCEL => self.child.cancel_fd(),
            _ => None,
        };
        if let Some(fd) = told {
            ready.remove(fd);
        }
    }

    /// Takes its descriptors out of the set.
    fn forget(self, ready: &ReadySet) {
        ready.remove(self.child.pidfd());
        if let Some(fd) = self.child.cancel_fd() {
            ready.remove(fd);
        }
    }
}

/// Ends the supervisor unless a caller is about to give it a child. Returns whether it has
/// ended.
///
/// The function takes both locks, in the order of [`SupervisorPlace::get`]:
///
/// 1. a caller that was first in `get` has a place, and the thread stays;
/// 2. a caller that comes later finds it ended, and starts another.
fn try_exit(shared: &SupervisorShared) -> bool {
    let mut supervisor = supervisor();
    let mut orders = shared.orders.lock();
    let is_idle = orders.places == 0 && orders.new.is_empty();
    if is_idle {
        orders.has_ended = true;
        // The wake-up is a descriptor that is of no use any more.
        if supervisor
            .as_ref()
            .is_some_and(|one| std::ptr::eq(&**one, shared))
        {
            *supervisor = None;
        }
    }
    is_idle
}
