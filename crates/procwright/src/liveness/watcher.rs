//! The one thread that is told of the ends of processes without a token.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::unmarked::Bell;
use crate::process::Process;
use crate::sys::fork::PerProcess;
use crate::sys::robust::{DIED, Flag};
use crate::sys::thread::spawn_bare;
use crate::sys::wake::Wake;
use crate::time::Timeout;
use crate::wait::{Awaits, Event, Key, WaitSet, Waitable, Want};

/// What a flag says while the process lives.
const ALIVE: u32 = 1;

/// What it says where nobody changes it: in a fork, or when the system has refused
/// to tell us. Whoever reads it has to ask.
pub(super) const UNKNOWN: u32 = 0;

/// A process that is being watched, until this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) flag: Arc<Flag>,
    number: u64,
    watcher: &'static Watcher,
    process: u32,
}

impl Watched {
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn new(process: &Process) -> io::Result<Watched> {
        Watched::with_bell(process, None)
    }

    /// The same, and a bell is rung when the flag has changed.
    pub(super) fn with_bell(process: &Process, bell: Option<Arc<Bell>>) -> io::Result<Watched> {
        let watcher = WATCHER.get();
        let flag = Arc::new(Flag::new(ALIVE)?);
        let told = Arc::new(Told {
            flag: Arc::clone(&flag),
            bell,
        });
        let number = watcher.watch(process.clone(), told)?;
        let watched = Watched {
            flag,
            number,
            watcher,
            process: std::process::id(),
        };
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

impl Drop for Watched {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.watcher.forget(self.number);
        }
    }
}

/// Who is told of an end.
#[derive(Debug)]
struct Told {
    flag: Arc<Flag>,
    bell: Option<Arc<Bell>>,
}

impl Told {
    fn tell(&self, what: u32) {
        self.flag.word().store(what, Ordering::SeqCst);
        if let Some(bell) = &self.bell {
            bell.ring();
        }
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
    Watch(u64, Process, Arc<Told>),
    Forget(u64),
}

impl Watcher {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&'static self, process: Process, told: Arc<Told>) -> io::Result<u64> {
        let mut desk = self.desk();
        if desk.failed {
            told.tell(UNKNOWN);
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
        desk.news.push(News::Watch(number, process, told));
        drop(desk);
        wake.ring();
        Ok(number)
    }

    fn forget(&self, number: u64) {
        let mut desk = self.desk();
        desk.news.push(News::Forget(number));
        if let Some(wake) = &desk.wake {
            wake.ring();
        }
    }

    /// Sleeps until a process ends or there is news. For ever: the thread is there
    /// for the next.
    fn work(&self, mut set: WaitSet<Member>) {
        let mut keys = BTreeMap::new();
        while let Ok(waited) = set.wait(Want::Any, Timeout::NEVER) {
            for (_, member) in waited.ended {
                match member {
                    Member::Peer(number, _, told) => {
                        told.tell(DIED);
                        keys.remove(&number);
                    }
                    Member::Desk(wake) => self.read(wake, &mut set, &mut keys),
                }
            }
        }
        // The kernel does not let us wait: everybody asks for himself.
        let mut desk = self.desk();
        desk.failed = true;
        let news = desk.news.drain(..).filter_map(|one| match one {
            News::Watch(_, _, told) => Some(told),
            News::Forget(_) => None,
        });
        let known = keys.into_values().map(|(_, told)| told);
        for told in news.chain(known) {
            told.tell(UNKNOWN);
        }
    }

    fn read(
        &self,
        wake: Arc<Wake>,
        set: &mut WaitSet<Member>,
        keys: &mut BTreeMap<u64, (Key, Arc<Told>)>,
    ) {
        let news = {
            let mut desk = self.desk();
            // Under the lock: what comes later rings again.
            wake.silence();
            std::mem::take(&mut desk.news)
        };
        let _ = set.add(Member::Desk(wake), Event::Exited);
        for one in news {
            match one {
                News::Watch(number, process, told) => {
                    let member = Member::Peer(number, process, Arc::clone(&told));
                    match set.add(member, Event::Exited) {
                        Ok(key) => drop(keys.insert(number, (key, told))),
                        Err(_) => told.tell(UNKNOWN),
                    }
                }
                News::Forget(number) => {
                    if let Some((key, _)) = keys.remove(&number) {
                        set.remove(key);
                    }
                }
            }
        }
    }
}

enum Member {
    Desk(Arc<Wake>),
    Peer(u64, Process, Arc<Told>),
}

impl Waitable for Member {
    fn awaits(&self) -> Awaits<'_> {
        match self {
            Member::Desk(wake) => Awaits::readable(wake.as_fd()),
            Member::Peer(_, process, _) => process.awaits(),
        }
    }
}
