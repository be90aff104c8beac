//! One thread that waits for the ends of processes and sets a flag for each.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::unmarked_sleepers::UnmarkedSleepers;
use procwright_os::fork::{ForkId, PerProcess};
use procwright_os::robust::{Flag, OWNER_DIED, WAITERS};
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::thread::spawn_bare;
use procwright_os::time::Timeout;
use procwright_os::wake::Wake;
use procwright_process::Process;
use procwright_process::wait::{Awaits, Event, Key, WaitSet, Waitable, Want};

/// Value of a flag while the process lives, the same as in the word of a token.
const ALIVE: u32 = WAITERS | 1;

/// Value of a flag that no thread will change: in a fork, or when the system refuses
/// the wait. Its reader has to ask the system.
pub(super) const UNKNOWN: u32 = 0;

/// What the end of a process changes: the flag, and then those who sleep beside it.
#[derive(Debug)]
struct EndNotice(Arc<Flag>, Option<Arc<UnmarkedSleepers>>);

impl EndNotice {
    fn ended(&self) {
        self.set(OWNER_DIED);
    }

    /// No thread will tell of the end.
    fn unknown(&self) {
        self.set(UNKNOWN);
    }

    fn set(&self, value: u32) {
        // SeqCst, with the fence in `wake_all`: the flag is set before sleepers are
        // counted.
        self.0.word().store(value, Ordering::SeqCst);
        if let Some(sleepers) = &self.1 {
            sleepers.wake_all(value == OWNER_DIED);
        }
    }
}

/// A registration with the thread. The drop ends it.
#[derive(Debug)]
struct Registration {
    number: u64,
    watcher: &'static Watcher,
    process: ForkId,
}

impl Registration {
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    fn new(process: &Process, notice: EndNotice) -> io::Result<Registration> {
        let watcher = WATCHER.get();
        Ok(Registration {
            number: watcher.watch(process.clone(), Arc::new(notice))?,
            watcher,
            process: ForkId::current(),
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A fork has no such thread.
        if self.process.is_current() {
            self.watcher.forget(self.number);
        }
    }
}

/// A flag that tells whether a process lives. The drop ends the watch.
#[derive(Debug)]
pub(super) struct ProcessWatch {
    pub(super) flag: Arc<Flag>,
    _registration: Registration,
}

impl ProcessWatch {
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn new(process: &Process) -> io::Result<ProcessWatch> {
        ProcessWatch::with_sleepers(process, None)
    }

    /// Watches `process`, and wakes `sleepers` when the flag has changed.
    ///
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn with_sleepers(
        process: &Process,
        sleepers: Option<Arc<UnmarkedSleepers>>,
    ) -> io::Result<ProcessWatch> {
        let flag = Arc::new(Flag::new(ALIVE)?);
        let notice = EndNotice(Arc::clone(&flag), sleepers);
        let _registration = Registration::new(process, notice)?;
        let watched = ProcessWatch {
            flag,
            _registration,
        };
        // A caller that was told of the end before must not find the process alive
        // here until the thread gets to it.
        if !process.is_alive() {
            watched.has_ended();
        }
        Ok(watched)
    }

    /// Sets the flag for a caller that knows of the end before the thread does: no
    /// other caller shall be told the opposite from then on.
    pub(super) fn has_ended(&self) {
        self.flag.word().store(OWNER_DIED, Ordering::Release);
    }
}

static WATCHER: PerProcess<Watcher> = PerProcess::new();

#[derive(Debug, Default)]
struct Watcher(Mutex<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    /// Wakes the thread; none before it runs.
    wake: Option<Arc<Wake>>,
    next_number: u64,
    /// The system has refused the wait, and the thread has ended.
    failed: bool,
    requests: Vec<Request>,
}

/// Stack of the thread: room for a wait by the most expensive mechanism.
const STACK: usize = 512 * 1024;

#[derive(Debug)]
enum Request {
    Watch(u64, Process, Arc<EndNotice>),
    Forget(u64),
}

impl Watcher {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock()
    }

    fn watch(&'static self, process: Process, notice: Arc<EndNotice>) -> io::Result<u64> {
        let mut inbox = self.inbox();
        if inbox.failed {
            notice.unknown();
            return Ok(0);
        }
        let wake = match &inbox.wake {
            Some(wake) => Arc::clone(wake),
            None => {
                let wake = Arc::new(Wake::new()?);
                let mut set = WaitSet::new()?;
                set.add(WaitMember::Inbox(Arc::clone(&wake)), Event::Exited)?;
                spawn_bare(c"procwright-watch", STACK, move || self.run(set))?;
                inbox.wake.insert(wake).clone()
            }
        };
        inbox.next_number += 1;
        let number = inbox.next_number;
        inbox.requests.push(Request::Watch(number, process, notice));
        drop(inbox);
        wake.ring();
        Ok(number)
    }

    fn forget(&self, number: u64) {
        let mut inbox = self.inbox();
        if inbox.failed {
            // No thread reads requests any more.
            return;
        }
        // An unread request is withdrawn: watches that come and go faster than the
        // thread is scheduled would pile up descriptors.
        let unread = |one: &Request| matches!(one, Request::Watch(unread, ..) if *unread == number);
        if let Some(at) = inbox.requests.iter().position(unread) {
            let unneeded = inbox.requests.remove(at);
            drop(inbox);
            return drop(unneeded);
        }
        inbox.requests.push(Request::Forget(number));
        if let Some(wake) = &inbox.wake {
            wake.ring();
        }
    }

    /// The body of the thread: waits for ends and requests, for ever.
    fn run(&self, mut set: WaitSet<WaitMember>) {
        let mut known = BTreeMap::new();
        let mut readable = true;
        while let (true, Ok(waited)) = (readable, set.wait(Want::Any, Timeout::NEVER)) {
            for (_, member) in waited.ended {
                match member {
                    WaitMember::Peer(number, _, notice) => {
                        notice.ended();
                        known.remove(&number);
                    }
                    WaitMember::Inbox(wake) => {
                        readable = self.read_requests(wake, &mut set, &mut known).is_ok()
                    }
                }
            }
        }
        // The kernel refuses the wait: every monitor asks the system itself from now on.
        let requests = {
            let mut inbox = self.inbox();
            inbox.failed = true;
            std::mem::take(&mut inbox.requests)
        };
        let unread = requests.into_iter().filter_map(|one| match one {
            Request::Watch(_, _, notice) => Some(notice),
            Request::Forget(_) => None,
        });
        let known = known.into_values().map(|(_, notice)| notice);
        unread.chain(known).for_each(|notice| notice.unknown());
    }

    /// Takes up what the inbox has.
    fn read_requests(
        &self,
        wake: Arc<Wake>,
        set: &mut WaitSet<WaitMember>,
        known: &mut BTreeMap<u64, (Key, Arc<EndNotice>)>,
    ) -> io::Result<()> {
        let requests = {
            let mut inbox = self.inbox();
            // Under the lock, so that a later request wakes the thread again.
            wake.silence();
            std::mem::take(&mut inbox.requests)
        };
        for one in requests {
            match one {
                Request::Watch(number, process, notice) => {
                    let member = WaitMember::Peer(number, process, Arc::clone(&notice));
                    match set.add(member, Event::Exited) {
                        Ok(key) => drop(known.insert(number, (key, notice))),
                        Err(_) => notice.unknown(),
                    }
                }
                Request::Forget(number) => {
                    if let Some((key, _)) = known.remove(&number) {
                        set.remove(key);
                    }
                }
            }
        }
        set.add(WaitMember::Inbox(wake), Event::Exited).map(drop)
    }
}

enum WaitMember {
    Inbox(Arc<Wake>),
    Peer(u64, Process, Arc<EndNotice>),
}

impl Waitable for WaitMember {
    fn awaits(&self) -> Awaits<'_> {
        match self {
            WaitMember::Inbox(wake) => Awaits::readable(wake.as_fd()),
            WaitMember::Peer(_, process, _) => process.awaits(),
        }
    }
}
