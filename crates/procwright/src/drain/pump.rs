//! One thread that drains the streams of all children that a caller holds.
//!
//! The thread sleeps in one epoll instance over all pipes, so that it wakes in
//! proportion to what is written and not at all while no program writes. It never waits
//! for anything else: a queue that is full is left until its consumer has made room,
//! and disks are the queue's own business. The thread lives while there is a stream,
//! and a moment longer.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::output::{Drain, DrainStep};
use crate::error::{SpawnError, Step};
use procwright_os::fork::{self, PerProcess};
use procwright_os::ready::{Interest, ReadySet};
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::thread;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// The time that the thread stays after the end of the last stream: a caller that
/// starts one child after the other does not start as many threads.
const LINGER: Duration = Duration::from_millis(100);

/// Reads of one stream before the next has its turn.
const READS: usize = 4;

/// The wake-up's key. Streams are counted from 1.
const WAKE: u64 = 0;

/// Added to the key of a stream whose program has exited.
const EXIT: u64 = 1 << 63;

type PumpedDrain = Drain<Vec<u8>>;

/// The pump, which does not end while this is held: what a stream is given to.
#[derive(Debug)]
pub(crate) struct Pump(Arc<PumpShared>);

#[derive(Debug)]
struct PumpShared {
    wake: Arc<Wake>,
    orders: Mutex<Orders>,
    generation: u32,
}

#[derive(Debug, Default)]
struct Orders {
    /// New streams, and their keys.
    flows: Vec<(u64, PumpedDrain)>,
    /// Keys of streams of which no more is wanted.
    unwanted: Vec<u64>,
    /// Keys of streams that end with what is in their pipes now.
    finishing: Vec<u64>,
    /// The key of the latest stream.
    last_key: u64,
    /// The number of [`Pump`]s.
    holders: usize,
    ended: bool,
}

impl PumpShared {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock()
    }
}

/// The pump of this process. A fork has its parent's memory and not the thread, so it
/// gets one of its own.
static PUMP: PerProcess<Mutex<Option<Arc<PumpShared>>>> = PerProcess::new();

fn pump() -> MutexGuard<'static, Option<Arc<PumpShared>>> {
    PUMP.get().lock()
}

impl Pump {
    /// The pump of this process, started if there is none.
    ///
    /// # Errors
    /// When no descriptor or thread can be had.
    pub(crate) fn get() -> Result<Pump, SpawnError> {
        let mut pump = pump();
        if let Some(shared) = &*pump {
            let mut orders = shared.orders();
            if !orders.ended {
                orders.holders += 1;
                return Ok(Pump(Arc::clone(shared)));
            }
        }
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let shared = Arc::new(PumpShared {
            wake: Arc::new(Wake::new().map_err(no_descriptor)?),
            orders: Mutex::new(Orders {
                holders: 1,
                ..Orders::default()
            }),
            generation: fork::generation(),
        });
        let ready = ReadySet::new().map_err(no_descriptor)?;
        let added = ready.add(shared.wake.as_fd(), WAKE, Interest::Read);
        added.map_err(no_descriptor)?;
        let theirs = Arc::clone(&shared);
        thread::spawn_quiet("procwright-pump", move || run(&theirs, &ready))
            .map_err(|error| SpawnError::new(Step::Thread, "", error))?;
        Ok(Pump(Arc::clone(pump.insert(shared))))
    }

    /// The wake-up that a queue rings when it has room again.
    pub(crate) fn wake(&self) -> Arc<Wake> {
        Arc::clone(&self.0.wake)
    }

    /// Drains a stream, to its end.
    pub(crate) fn take(&self, flow: PumpedDrain) -> PumpedStream {
        let mut orders = self.0.orders();
        orders.last_key += 1;
        let key = orders.last_key;
        // A pump that has died under its holder drops the stream, which tells the
        // stream's reader.
        let refused = match orders.ended {
            true => Some(flow),
            false => {
                orders.flows.push((key, flow));
                None
            }
        };
        drop(orders);
        drop(refused);
        self.0.wake.ring();
        PumpedStream {
            shared: Arc::downgrade(&self.0),
            key,
            generation: self.0.generation,
        }
    }
}

/// A stream that the pump has.
#[derive(Clone, Debug)]
pub(crate) struct PumpedStream {
    /// Gone with the pump: a stream that is read long after its end keeps no
    /// descriptor of it.
    shared: Weak<PumpShared>,
    key: u64,
    generation: u32,
}

impl PumpedStream {
    /// Closes the pipe, soon: no more is wanted of the stream.
    pub(crate) fn leave(&self) {
        self.order(|orders, key| orders.unwanted.push(key));
    }

    /// Has the stream end with what is in its pipe now, whoever else may still write: the
    /// program has exited.
    pub(crate) fn finish(&self) {
        self.order(|orders, key| orders.finishing.push(key));
    }

    fn order(&self, give: impl FnOnce(&mut Orders, u64)) {
        if self.generation == fork::generation()
            && let Some(shared) = self.shared.upgrade()
        {
            give(&mut shared.orders(), self.key);
            shared.wake.ring();
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if self.0.generation != fork::generation() {
            return;
        }
        let mut orders = self.0.orders();
        orders.holders -= 1;
        if orders.holders == 0 {
            // The thread may want to end.
            self.0.wake.ring();
        }
    }
}

/// Tells the readers of all streams if the pump dies of a bug. The next caller of
/// [`Pump::get`] starts another.
struct FailOnDrop<'a>(&'a PumpShared);

impl Drop for FailOnDrop<'_> {
    fn drop(&mut self) {
        let mut orders = self.0.orders();
        orders.ended = true;
        let flows = std::mem::take(&mut orders.flows);
        drop(orders);
        drop(flows);
    }
}

fn run(shared: &PumpShared, ready: &ReadySet) {
    let _fail = FailOnDrop(shared);
    let mut flows: HashMap<u64, PumpedDrain> = HashMap::new();
    // Streams whose queue is full. Out of the set, or they would be ready all the time.
    let mut held: Vec<u64> = Vec::new();
    let mut keys = Vec::new();
    let mut idle_until = Deadline::NEVER;
    loop {
        keys.clear();
        if let Err(error) = ready.wait(&mut keys, idle_until) {
            // The error is not expected, and the next call would have it too: going on
            // would only be busy. All readers are told, and the next caller of `get`
            // starts another pump.
            for flow in flows.values_mut() {
                flow.break_off(io::Error::new(error.kind(), error.to_string()));
            }
            return;
        }
        if keys.contains(&WAKE) {
            shared.wake.silence();
            let (new, unwanted, finishing) = {
                let mut orders = shared.orders();
                (
                    std::mem::take(&mut orders.flows),
                    std::mem::take(&mut orders.unwanted),
                    std::mem::take(&mut orders.finishing),
                )
            };
            for (key, mut flow) in new {
                if watch(ready, key, &mut flow) {
                    watch_exit(ready, key, &mut flow);
                    flows.insert(key, flow);
                    keys.push(key);
                }
            }
            for key in unwanted {
                // A stream may have ended by itself, or have come just now.
                if let Some(mut flow) = flows.remove(&key) {
                    flow.cut();
                    if let Some(fd) = flow.fd() {
                        ready.remove(fd);
                    }
                    forget_exit(ready, &mut flow);
                }
            }
            for key in finishing {
                if let Some(flow) = flows.get_mut(&key) {
                    if let Some(fd) = flow.exit() {
                        ready.remove(fd);
                    }
                    flow.finish_in_steps();
                    // One that has ended by this is found so by its next step. A stream that
                    // is held gets its step below.
                    if !keys.contains(&key) && !held.contains(&key) {
                        keys.push(key);
                    }
                }
            }
            // The wake-up is for all streams. One that has no room yet costs a look and
            // no system call, or one slow reader of many would slow down the others.
            held.retain(|&key| {
                let Some(flow) = flows.get_mut(&key) else {
                    return false;
                };
                if flow.is_held() {
                    return true;
                }
                match watch(ready, key, flow) {
                    true => keys.push(key),
                    false => {
                        forget_exit(ready, flow);
                        drop(flows.remove(&key));
                    }
                }
                false
            });
        }
        for &key in keys.iter().filter(|key| **key & EXIT != 0) {
            // The descriptor of the terminal tells the end from now on.
            if let Some(flow) = flows.get_mut(&(key & !EXIT)) {
                forget_exit(ready, flow);
            }
        }
        let now = Instant::now();
        for &key in keys.iter().filter(|key| **key != WAKE && **key & EXIT == 0) {
            let Some(flow) = flows.get_mut(&key) else {
                continue;
            };
            flow.slept(now);
            let after = step(flow);
            if after != After::Wait
                && let Some(fd) = flow.fd()
            {
                ready.remove(fd);
            }
            if after == After::Ended {
                forget_exit(ready, flow);
            }
            match after {
                After::Wait => {}
                After::Held => held.push(key),
                // Closes the pipe, so that a program that still writes learns of it.
                After::Ended => drop(flows.remove(&key)),
            }
        }
        idle_until = match flows.is_empty() {
            false => Deadline::NEVER,
            true if idle_until == Deadline::NEVER => Deadline::at(Instant::now() + LINGER),
            true => idle_until,
        };
        if idle_until.reached(Instant::now()) {
            if try_exit(shared) {
                return;
            }
            // The wake-up tells when that changes.
            idle_until = Deadline::at(Instant::now() + LINGER);
        }
    }
}

/// Puts a stream into the set. One that cannot be watched (the system allows a
/// user so many) would never be read again, so its reader is told.
fn watch(ready: &ReadySet, key: u64, flow: &mut PumpedDrain) -> bool {
    let Some(fd) = flow.fd() else {
        return true;
    };
    let added = ready.add(fd, key, Interest::Read);
    added.map_err(|error| flow.break_off(error)).is_ok()
}

/// Puts the descriptor that tells of the program's exit into the set, if the stream has
/// one.
fn watch_exit(ready: &ReadySet, key: u64, flow: &mut PumpedDrain) {
    let added = flow
        .exit()
        .map(|fd| ready.add(fd, key | EXIT, Interest::Read));
    if let Some(Err(_)) = added {
        // A stream that is not told so may end too early, but it ends.
        flow.exited();
    }
}

/// Tells the stream that the program has exited, or that no more is wanted. The
/// descriptor is taken out by hand: there are others of the same file, with which it
/// would stay in the set.
fn forget_exit(ready: &ReadySet, flow: &mut PumpedDrain) {
    if let Some(fd) = flow.exit() {
        ready.remove(fd);
    }
    flow.exited();
}

/// Ends the pump unless a caller is about to give it a stream. Returns whether it has
/// ended.
///
/// The function takes both locks, in the order of [`Pump::get`]:
///
/// 1. a caller that was first in `get` counts as a holder, and the pump stays;
/// 2. a caller that comes later finds the pump ended, and starts another.
fn try_exit(shared: &PumpShared) -> bool {
    let mut pump = pump();
    let mut orders = shared.orders();
    let idle = orders.holders == 0 && orders.flows.is_empty() && orders.unwanted.is_empty();
    if idle {
        orders.ended = true;
        // The wake-up is a descriptor that is of no use any more.
        if pump
            .as_ref()
            .is_some_and(|one| std::ptr::eq(&**one, shared))
        {
            *pump = None;
        }
    }
    idle
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Wait,
    Held,
    Ended,
}

fn step(flow: &mut PumpedDrain) -> After {
    for _ in 0..READS {
        match flow.step() {
            Ok(DrainStep::Moved) => {}
            Ok(DrainStep::Empty) => return After::Wait,
            Ok(DrainStep::Held) => return After::Held,
            Ok(DrainStep::End) => return After::Ended,
            Err(error) => {
                flow.break_off(error);
                return After::Ended;
            }
        }
    }
    After::Wait
}

#[cfg(test)]
#[path = "pump_tests.rs"]
mod tests;
