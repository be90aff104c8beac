//! One thread that drains the streams of all children that a caller holds.
//!
//! It sleeps in one epoll instance over all pipes, so that it wakes in proportion
//! to what is written and not at all while nobody writes. It never waits for
//! anything else: a queue that is full is left until its consumer has made room,
//! and disks are the queue's own business. It is there while there is a stream,
//! and a moment longer.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::{Drain, Step};
use crate::sys::fork::{self, PerProcess};
use crate::sys::ready::{On, ReadySet};
use crate::sys::thread;
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// How long it stays when the last stream has ended: who starts one child after
/// the other does not start as many threads.
const LINGER: Duration = Duration::from_millis(100);

/// Reads of one stream before the next has its turn.
const READS: usize = 4;

/// The wake-up's key. Streams are counted from 1.
const WAKE: u64 = 0;

/// Added to the key of a stream whose program has exited.
const EXIT: u64 = 1 << 63;

type Flow = Drain<Vec<u8>>;

/// The pump, which does not end while this is held: what a stream is given to.
#[derive(Debug)]
pub(crate) struct Pump(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    wake: Arc<Wake>,
    orders: Mutex<Orders>,
    generation: u32,
}

#[derive(Debug, Default)]
struct Orders {
    /// New streams, and what they are called.
    flows: Vec<(u64, Flow)>,
    /// Streams that nobody wants more of.
    unwanted: Vec<u64>,
    /// The name of the latest.
    named: u64,
    /// Those who hold a [`Pump`].
    holders: usize,
    ended: bool,
}

impl Shared {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fork has its parent's memory and not the thread, so it gets one of its own.
static PUMP: PerProcess<Mutex<Option<Arc<Shared>>>> = PerProcess::new();

fn pump() -> MutexGuard<'static, Option<Arc<Shared>>> {
    PUMP.get().lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pump {
    /// The pump of this process, started if there is none.
    ///
    /// # Errors
    /// When no descriptor or thread can be had.
    pub(crate) fn get() -> io::Result<Pump> {
        let mut pump = pump();
        if let Some(shared) = &*pump {
            let mut orders = shared.orders();
            if !orders.ended {
                orders.holders += 1;
                return Ok(Pump(Arc::clone(shared)));
            }
        }
        let shared = Arc::new(Shared {
            wake: Arc::new(Wake::new()?),
            orders: Mutex::new(Orders {
                holders: 1,
                ..Orders::default()
            }),
            generation: fork::generation(),
        });
        let ready = ReadySet::new()?;
        ready.add(shared.wake.as_fd(), WAKE, On::Read)?;
        let theirs = Arc::clone(&shared);
        thread::spawn_quiet("procwright-pump", move || run(&theirs, &ready))?;
        Ok(Pump(Arc::clone(pump.insert(shared))))
    }

    /// What a queue rings when it has room again.
    pub(crate) fn wake(&self) -> Arc<Wake> {
        Arc::clone(&self.0.wake)
    }

    /// Takes over a stream, to its end.
    pub(crate) fn take(&self, flow: Flow) -> Taken {
        let mut orders = self.0.orders();
        orders.named += 1;
        let key = orders.named;
        // One that has died under its holder drops it, which its reader is told.
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
        Taken {
            shared: Arc::downgrade(&self.0),
            key,
            generation: self.0.generation,
        }
    }
}

/// A stream that the pump has.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Gone with the pump: a stream that is read long after its end keeps no
    /// descriptor of it.
    shared: Weak<Shared>,
    key: u64,
    generation: u32,
}

impl Taken {
    /// Nobody wants more of it: its pipe is closed, soon.
    pub(crate) fn leave(&self) {
        if self.generation == fork::generation()
            && let Some(shared) = self.shared.upgrade()
        {
            shared.orders().unwanted.push(self.key);
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
            // It may want to end.
            self.0.wake.ring();
        }
    }
}

/// If the pump dies of a bug, the readers of its streams are told, and whoever
/// comes next starts another.
struct Dies<'a>(&'a Shared);

impl Drop for Dies<'_> {
    fn drop(&mut self) {
        let mut orders = self.0.orders();
        orders.ended = true;
        let flows = std::mem::take(&mut orders.flows);
        drop(orders);
        drop(flows);
    }
}

fn run(shared: &Shared, ready: &ReadySet) {
    let _dies = Dies(shared);
    let mut flows: HashMap<u64, Flow> = HashMap::new();
    // Whose queue is full. Out of the set, or it would be ready all the time.
    let mut held: Vec<u64> = Vec::new();
    let mut keys = Vec::new();
    let mut idle_until = Deadline::NEVER;
    loop {
        keys.clear();
        if let Err(error) = ready.wait(&mut keys, idle_until) {
            // Not to be expected, and the next call would have it too: going on
            // would only be busy. All readers are told, and whoever comes next
            // starts another.
            for flow in flows.values_mut() {
                flow.break_off(io::Error::new(error.kind(), error.to_string()));
            }
            return;
        }
        if keys.contains(&WAKE) {
            shared.wake.silence();
            let (new, unwanted) = {
                let mut orders = shared.orders();
                (
                    std::mem::take(&mut orders.flows),
                    std::mem::take(&mut orders.unwanted),
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
                // Also one that has ended by itself, or came just now.
                if let Some(mut flow) = flows.remove(&key) {
                    flow.cut();
                    if let Some(fd) = flow.fd() {
                        ready.remove(fd);
                    }
                    exited(ready, &mut flow);
                }
            }
            // The wake-up is for all; those that have no room yet cost a look and
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
                        exited(ready, flow);
                        drop(flows.remove(&key));
                    }
                }
                false
            });
        }
        for &key in keys.iter().filter(|key| **key & EXIT != 0) {
            // Its end is told by the descriptor itself, from now on.
            if let Some(flow) = flows.get_mut(&(key & !EXIT)) {
                exited(ready, flow);
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
                exited(ready, flow);
            }
            match after {
                After::Wait => {}
                After::Held => held.push(key),
                // Closes the pipe, so that who still writes learns of it.
                After::Ended => drop(flows.remove(&key)),
            }
        }
        idle_until = match flows.is_empty() {
            false => Deadline::NEVER,
            true if idle_until == Deadline::NEVER => Deadline::at(Instant::now() + LINGER),
            true => idle_until,
        };
        if idle_until.reached(Instant::now()) {
            if leave(shared) {
                return;
            }
            // The wake-up tells when that changes.
            idle_until = Deadline::at(Instant::now() + LINGER);
        }
    }
}

/// Puts a stream into the set. One that cannot be watched (the system allows a
/// user so many) would never be read again, so its reader is told.
fn watch(ready: &ReadySet, key: u64, flow: &mut Flow) -> bool {
    let Some(fd) = flow.fd() else {
        return true;
    };
    let added = ready.add(fd, key, On::Read);
    added.map_err(|error| flow.break_off(error)).is_ok()
}

/// Puts what tells of the program's exit into the set, if the stream wants to
/// know of it.
fn watch_exit(ready: &ReadySet, key: u64, flow: &mut Flow) {
    let added = flow.exit().map(|fd| ready.add(fd, key | EXIT, On::Read));
    if let Some(Err(_)) = added {
        // Then it may end too early, but it ends.
        flow.exited();
    }
}

/// The program has exited, or nobody wants to know of it any more. Taken out by
/// hand: others have the same descriptor, with which it would stay in.
fn exited(ready: &ReadySet, flow: &mut Flow) {
    if let Some(fd) = flow.exit() {
        ready.remove(fd);
    }
    flow.exited();
}

/// Ends the pump if nobody is about to give it a stream.
fn leave(shared: &Shared) -> bool {
    // Under both locks, in the order of `Pump::get`: whoever comes next starts
    // another.
    let mut pump = pump();
    let mut orders = shared.orders();
    let idle = orders.holders == 0 && orders.flows.is_empty() && orders.unwanted.is_empty();
    if idle {
        orders.ended = true;
        // Its wake-up is a descriptor that nobody needs any more.
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

fn step(flow: &mut Flow) -> After {
    for _ in 0..READS {
        match flow.step() {
            Ok(Step::Moved) => {}
            Ok(Step::Empty) => return After::Wait,
            Ok(Step::Held) => return After::Held,
            Ok(Step::End) => return After::Ended,
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
