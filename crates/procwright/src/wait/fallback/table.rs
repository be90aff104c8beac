//! No descriptor left: threads that have a descriptor table each, and in it the
//! pidfds that the process has no room for.
//!
//! A thread takes as many as its table holds, then another is started: eight
//! for two thousand processes under a limit of 256, and as much the sleeper as
//! an epoll instance of the caller's would be. Nothing that another thread of
//! this process does is touched by it: see [`table::leave`].
//!
//! What cannot be shared between tables are descriptors, so that such a thread
//! is woken by a signal to itself, and lets a relay in the common table ring.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Caller;
use crate::ident::{NoPidfd, Watched};
use crate::sys::fork::PerProcess;
use crate::sys::ready::{On, ReadySet};
use crate::sys::table::{self, Address, Nudge};
use crate::sys::thread;
use crate::time::Deadline;
use crate::wait::Event;

enum Order {
    Watch {
        id: u64,
        process: Watched,
        event: Event,
        news: News,
        caller: Caller,
        answer: Sender<Answer>,
    },
    Forget(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Watching,
    /// No room.
    Full,
    /// There is no pidfd for this thread either, or it does not tell of a reap.
    Cannot,
}

#[derive(Debug)]
struct Keeper {
    name: u64,
    thread: Address,
    orders: Sender<Order>,
    /// It has refused since somebody left it.
    full: bool,
}

#[derive(Debug, Default)]
struct Keepers {
    list: Vec<Keeper>,
    /// To the relay, which ends when this and its clones in the keepers are gone.
    relay: Option<Sender<Caller>>,
    /// The next name, of a keeper or a watch.
    next: u64,
}

static KEEPERS: PerProcess<Mutex<Keepers>> = PerProcess::new();

fn lock() -> MutexGuard<'static, Keepers> {
    let keepers = KEEPERS.get();
    keepers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the watch.
#[derive(Debug)]
pub(super) struct Job {
    news: News,
    keeper: u64,
    id: u64,
    /// Whose keeper: a fork's have names of their own.
    process: u32,
}

/// Whether the event has come about, as the keeper's pidfd says.
type News = Arc<AtomicBool>;

impl Job {
    /// Whether the event is known to have come about. Who holds the job need not
    /// look, and perhaps cannot: there may be no descriptor to do it with.
    pub(super) fn is_certain(&self) -> bool {
        self.news.load(Ordering::Acquire)
    }
}

/// Somebody who is watched.
struct Member {
    pidfd: OwnedFd,
    news: News,
    caller: Caller,
}

/// A watch that was asked for.
struct Asked {
    job: Job,
    /// Whether the keeper was started for it, so that no other has more room.
    fresh: bool,
    /// Whether the keeper was told. If not, to drop the job takes back what was
    /// asked for; not under the lock, which that needs.
    reached: bool,
    answer: Receiver<Answer>,
}

/// None if no such thread can be had, or none that can tell of the event.
pub(super) fn watch(process: &Watched, event: Event, caller: &Caller) -> Option<Job> {
    loop {
        let asked = lock().ask(process, event, caller)?;
        // Not under the lock, which the keeper may need before it answers.
        match asked.answered()? {
            Answer::Watching => return Some(asked.job),
            Answer::Full if !asked.fresh => lock().set_full(asked.job.keeper, true),
            Answer::Full | Answer::Cannot => return None,
        }
    }
}

/// An answer takes microseconds. If none comes for so long, the nudge may have
/// been lost.
const LOST: Duration = Duration::from_millis(20);

/// How often it is nudged again. Whoever ignores signals without pause can throw
/// away every one; then another way has to serve.
const NUDGES: usize = 10;

impl Asked {
    /// None if none will come, or none has for too long.
    fn answered(&self) -> Option<Answer> {
        if !self.reached {
            return None;
        }
        for _ in 0..NUDGES {
            match self.answer.recv_timeout(LOST) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let keepers = lock();
            let mut list = keepers.list.iter();
            let keeper = list.find(|one| one.name == self.job.keeper)?;
            keeper.nudge()?;
        }
        None
    }
}

impl Keepers {
    fn ask(&mut self, process: &Watched, event: Event, caller: &Caller) -> Option<Asked> {
        let fresh = self.list.iter().all(|keeper| keeper.full);
        if fresh {
            self.start()?;
        }
        let id = self.name();
        let keeper = self.list.iter().find(|keeper| !keeper.full)?;
        let (sender, answer) = channel();
        let news = News::default();
        let order = Order::Watch {
            id,
            process: process.by_number(),
            event,
            news: Arc::clone(&news),
            caller: caller.clone(),
            answer: sender,
        };
        let job = Job {
            news,
            keeper: keeper.name,
            id,
            process: std::process::id(),
        };
        let reached = keeper.orders.send(order).is_ok() && keeper.nudge().is_some();
        Some(Asked {
            job,
            fresh,
            reached,
            answer,
        })
    }

    fn start(&mut self) -> Option<()> {
        let relay = match &self.relay {
            Some(relay) => relay.clone(),
            None => {
                let (relay, rung) = channel::<Caller>();
                let work = move || rung.iter().for_each(|caller| caller.ring());
                thread::spawn_quiet("procwright-relay", work).ok()?;
                self.relay.insert(relay).clone()
            }
        };
        let (orders, inbox) = channel();
        let (started, address) = channel();
        let name = self.name();
        let work = move || keep(name, &inbox, &relay, &started);
        let thread = match thread::spawn_quiet("procwright-table", work) {
            Ok(_) => address.recv().ok(),
            Err(_) => None,
        };
        let Some(thread) = thread else {
            self.leave(name);
            return None;
        };
        self.list.push(Keeper {
            name,
            thread,
            orders,
            full: false,
        });
        Some(())
    }

    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn set_full(&mut self, name: u64, full: bool) {
        if let Some(keeper) = self.list.iter_mut().find(|keeper| keeper.name == name) {
            keeper.full = full;
        }
    }

    fn leave(&mut self, name: u64) {
        self.list.retain(|keeper| keeper.name != name);
        if self.list.is_empty() {
            self.relay = None;
        }
    }
}

impl Keeper {
    /// Tells it to look for orders; none if that cannot be done. It is in the
    /// list, so its thread is there, and takes what was sent before it leaves
    /// the list.
    fn nudge(&self) -> Option<()> {
        table::nudge(self.thread).ok()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        // None if it has ended and the keeper with it.
        if let Some(keeper) = lock().list.iter().find(|one| one.name == self.keeper) {
            // If it cannot be told now, it takes this with what it is told next.
            let _ = keeper.orders.send(Order::Forget(self.id));
            let _ = keeper.nudge();
        }
    }
}

/// The life of such a thread: until it has nobody left to watch.
fn keep(name: u64, orders: &Receiver<Order>, relay: &Sender<Caller>, started: &Sender<Address>) {
    let Ok((ready, nudge)) = leave() else {
        return;
    };
    if started.send(nudge.address()).is_err() {
        return;
    }
    let mut members: HashMap<u64, Member> = HashMap::new();
    let mut keys = Vec::new();
    let mut had = 0;
    loop {
        while let Ok(order) = orders.try_recv() {
            obey(order, &ready, &mut members, relay);
        }
        {
            let mut keepers = lock();
            if members.is_empty() {
                // Orders are given under this lock, so none is lost.
                match orders.try_recv() {
                    Ok(order) => {
                        drop(keepers);
                        obey(order, &ready, &mut members, relay);
                        continue;
                    }
                    Err(_) => return keepers.leave(name),
                }
            }
            // Only when somebody has left: a keeper that merely has answered that
            // it is full would be asked again at once.
            if members.len() < had {
                keepers.set_full(name, false);
            }
            had = members.len();
        }
        keys.clear();
        let waited = ready.wait(&mut keys, Deadline::NEVER);
        if waited.is_err() {
            // Not to be expected. Whoever is rung looks for himself.
            keys.extend(members.keys());
        }
        for key in &keys {
            match members.remove(key) {
                Some(member) => {
                    member.news.store(waited.is_ok(), Ordering::Release);
                    // Before it is told of: who is told may need the room.
                    drop(member.pidfd);
                    let _ = relay.send(member.caller);
                }
                None => nudge.silence(),
            }
        }
    }
}

/// Never the key of a watch: those are counted from 1 up.
const NUDGE: u64 = 0;

fn leave() -> io::Result<(ReadySet, Nudge)> {
    table::leave()?;
    let ready = ReadySet::new()?;
    let nudge = Nudge::new()?;
    ready.add(nudge.as_fd(), NUDGE, On::Read)?;
    Ok((ready, nudge))
}

fn obey(
    order: Order,
    ready: &ReadySet,
    members: &mut HashMap<u64, Member>,
    relay: &Sender<Caller>,
) {
    let (id, process, event, news, caller, answer) = match order {
        Order::Watch {
            id,
            process,
            event,
            news,
            caller,
            answer,
        } => (id, process, event, news, caller, answer),
        Order::Forget(id) => {
            members.remove(&id);
            return;
        }
    };
    let said = match process.pidfd_now() {
        Ok(None) => {
            news.store(true, Ordering::Release);
            let _ = relay.send(caller);
            Answer::Watching
        }
        Ok(Some(fd)) => match event.told_by(fd.as_fd()) {
            Some(on) if ready.add(fd.as_fd(), id, on).is_ok() => {
                let member = Member {
                    pidfd: fd,
                    news,
                    caller,
                };
                members.insert(id, member);
                Answer::Watching
            }
            _ => Answer::Cannot,
        },
        Err(NoPidfd::Now) => Answer::Full,
        Err(NoPidfd::Never) => Answer::Cannot,
    };
    // Whoever asked waits for this.
    let _ = answer.send(said);
}
