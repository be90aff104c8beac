//! The one thread that is told of the ends of processes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bell::Bell;
use crate::process::Process;
use crate::sys::fork::{Ourselves, PerProcess};
use crate::sys::robust::{AWAITED, DIED, Flag};
use crate::sys::thread::spawn_bare;
use crate::sys::wake::Wake;
use crate::time::Timeout;
use crate::wait::{Awaits, Event, Key, WaitSet, Waitable, Want};

/// What a flag says while the process lives: what a word of a token does.
const ALIVE: u32 = AWAITED | 1;

/// What it says where nobody changes it: in a fork, or when the system has refused
/// to tell us. Whoever reads it has to ask.
pub(super) const UNKNOWN: u32 = 0;

/// What is done when a process has ended: the flag says so, and then the bell is
/// rung.
#[derive(Debug)]
struct Tell(Arc<Flag>, Option<Arc<Bell>>);

impl Tell {
    fn ended(&self) {
        self.say(DIED);
    }

    /// Nobody will tell.
    fn unknown(&self) {
        self.say(UNKNOWN);
    }

    fn say(&self, what: u32) {
        self.0.word().store(what, Ordering::SeqCst);
        if let Some(bell) = &self.1 {
            bell.ring(what == DIED);
        }
    }
}

/// Tells of the end of a process, until this is dropped.
#[derive(Debug)]
struct Watch {
    number: u64,
    watcher: &'static Watcher,
    process: Ourselves,
}

impl Watch {
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    fn new(process: &Process, tell: Tell) -> io::Result<Watch> {
        let watcher = WATCHER.get();
        Ok(Watch {
            number: watcher.watch(process.clone(), Arc::new(tell))?,
            watcher,
            process: Ourselves::now(),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // A fork does not have the thread.
        if self.process.are_we() {
            self.watcher.forget(self.number);
        }
    }
}

/// A process that is being watched, until this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) flag: Arc<Flag>,
    _watch: Watch,
}

impl Watched {
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn new(process: &Process) -> io::Result<Watched> {
        Watched::with_bell(process, None)
    }

    /// The same, and a bell is rung when the flag has changed.
    pub(super) fn with_bell(process: &Process, bell: Option<Arc<Bell>>) -> io::Result<Watched> {
        let flag = Arc::new(Flag::new(ALIVE)?);
        let _watch = Watch::new(process, Tell(Arc::clone(&flag), bell))?;
        let watched = Watched { flag, _watch };
        // Or who was told of the end before would find it alive here, until the
        // thread comes to it.
        if !process.is_alive() {
            watched.has_ended();
        }
        Ok(watched)
    }

    /// Somebody knows before the thread does: then nobody shall be told the opposite
    /// any more.
    pub(super) fn has_ended(&self) {
        self.flag.word().store(DIED, Ordering::Release);
    }
}

static WATCHER: PerProcess<Watcher> = PerProcess::new();

#[derive(Debug, Default)]
struct Watcher(Mutex<Desk>);

#[derive(Debug, Default)]
struct Desk {
    /// Rung for the thread; none before it runs.
    wake: Option<Arc<Wake>>,
    next: u64,
    failed: bool,
    news: Vec<News>,
}

/// For a wait, in the worst case by other means than the best.
const STACK: usize = 512 * 1024;

#[derive(Debug)]
enum News {
    Watch(u64, Process, Arc<Tell>),
    Forget(u64),
}

impl Watcher {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&'static self, process: Process, tell: Arc<Tell>) -> io::Result<u64> {
        let mut desk = self.desk();
        if desk.failed {
            tell.unknown();
            return Ok(0);
        }
        let wake = match &desk.wake {
            Some(wake) => Arc::clone(wake),
            None => {
                let wake = Arc::new(Wake::new()?);
                let mut set = WaitSet::new()?;
                set.add(Member::Desk(Arc::clone(&wake)), Event::Exited)?;
                spawn_bare(c"procwright-watch", STACK, move || self.work(set))?;
                desk.wake.insert(wake).clone()
            }
        };
        desk.next += 1;
        let number = desk.next;
        desk.news.push(News::Watch(number, process, tell));
        drop(desk);
        wake.ring();
        Ok(number)
    }

    fn forget(&self, number: u64) {
        let mut desk = self.desk();
        if desk.failed {
            // Nobody reads it.
            return;
        }
        // Who comes and goes faster than the thread is let run would pile up
        // descriptors that nobody needs.
        let unread = |one: &News| matches!(one, News::Watch(unread, ..) if *unread == number);
        if let Some(at) = desk.news.iter().position(unread) {
            let unneeded = desk.news.remove(at);
            drop(desk);
            return drop(unneeded);
        }
        desk.news.push(News::Forget(number));
        if let Some(wake) = &desk.wake {
            wake.ring();
        }
    }

    /// Sleeps until a process ends or there is news. For ever: the thread is there
    /// for the next.
    fn work(&self, mut set: WaitSet<Member>) {
        let mut known = BTreeMap::new();
        let mut hears = true;
        while let (true, Ok(waited)) = (hears, set.wait(Want::Any, Timeout::NEVER)) {
            for (_, member) in waited.ended {
                match member {
                    Member::Peer(number, _, tell) => {
                        tell.ended();
                        known.remove(&number);
                    }
                    Member::Desk(wake) => hears = self.read(wake, &mut set, &mut known).is_ok(),
                }
            }
        }
        // The kernel does not let us wait: everybody asks for himself.
        let news = {
            let mut desk = self.desk();
            desk.failed = true;
            std::mem::take(&mut desk.news)
        };
        let news = news.into_iter().filter_map(|one| match one {
            News::Watch(_, _, tell) => Some(tell),
            News::Forget(_) => None,
        });
        let known = known.into_values().map(|(_, tell)| tell);
        news.chain(known).for_each(|tell| tell.unknown());
    }

    fn read(
        &self,
        wake: Arc<Wake>,
        set: &mut WaitSet<Member>,
        known: &mut BTreeMap<u64, (Key, Arc<Tell>)>,
    ) -> io::Result<()> {
        let news = {
            let mut desk = self.desk();
            // Under the lock: what comes later rings again.
            wake.silence();
            std::mem::take(&mut desk.news)
        };
        for one in news {
            match one {
                News::Watch(number, process, tell) => {
                    let member = Member::Peer(number, process, Arc::clone(&tell));
                    match set.add(member, Event::Exited) {
                        Ok(key) => drop(known.insert(number, (key, tell))),
                        Err(_) => tell.unknown(),
                    }
                }
                News::Forget(number) => {
                    if let Some((key, _)) = known.remove(&number) {
                        set.remove(key);
                    }
                }
            }
        }
        set.add(Member::Desk(wake), Event::Exited).map(drop)
    }
}

enum Member {
    Desk(Arc<Wake>),
    Peer(u64, Process, Arc<Tell>),
}

impl Waitable for Member {
    fn awaits(&self) -> Awaits<'_> {
        match self {
            Member::Desk(wake) => Awaits::readable(wake.as_fd()),
            Member::Peer(_, process, _) => process.awaits(),
        }
    }
}
