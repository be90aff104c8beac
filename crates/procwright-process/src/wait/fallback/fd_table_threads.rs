//! Waits where no descriptor is left: threads with a descriptor table each, which holds
//! the pidfds that the process has no room for.
//!
//! A thread takes as many as its table holds, then another is started: eight for two
//! thousand processes under a limit of 256. It sleeps as an epoll instance of the caller
//! would. No other thread of this process is affected: see [`fd_table::unshare_empty`].
//!
//! Tables share no descriptors, so such a thread is woken by a signal to itself, and
//! has a relay thread in the common table notify the set.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::Notify;
use crate::process_handle::{NoPidfd, ProcessHandle};
use crate::wait::Event;
use procwright_os::fd_table::{self, ThreadWake, Tid};
use procwright_os::fork::PerProcess;
use procwright_os::ready::{Interest, ReadySet};
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::thread;
use procwright_os::time::Deadline;

enum Request {
    Watch {
        id: u64,
        process: ProcessHandle,
        event: Event,
        ended: EndedFlag,
        notify: Notify,
        answer: Sender<Answer>,
    },
    Forget(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Watching,
    /// The table is full.
    Full,
    /// This thread has no pidfd either, or it does not tell of a reap.
    Cannot,
}

#[derive(Debug)]
struct TableThread {
    name: u64,
    thread: Tid,
    requests: Sender<Request>,
    /// The thread has refused a watch since one last ended.
    full: bool,
}

#[derive(Debug, Default)]
struct TableThreads {
    list: Vec<TableThread>,
    /// Channel to the relay, which ends when this and its clones in the threads are gone.
    relay: Option<Sender<Notify>>,
    /// The latest name of a thread or a watch.
    next: u64,
}

static TABLE_THREADS: PerProcess<Mutex<TableThreads>> = PerProcess::new();

fn lock() -> MutexGuard<'static, TableThreads> {
    let threads = TABLE_THREADS.get();
    threads.lock()
}

/// A watch by a thread. The drop ends it.
#[derive(Debug)]
pub(super) struct TableWatch {
    ended: EndedFlag,
    thread: u64,
    id: u64,
    /// The process of the thread: names in a fork are others.
    process: u32,
}

/// Set once the pidfd of the thread says that the event has come about.
type EndedFlag = Arc<AtomicBool>;

impl TableWatch {
    /// Whether the event is known to have come about. The holder of the watch need not
    /// look, and perhaps cannot: there may be no descriptor to do it with.
    pub(super) fn is_certain(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// A process that a thread watches.
struct TableMember {
    pidfd: OwnedFd,
    ended: EndedFlag,
    notify: Notify,
}

/// A watch that was asked for and not answered yet.
struct PendingWatch {
    job: TableWatch,
    /// Whether the thread was started for it, so that no other has more room.
    is_new: bool,
    /// Whether the thread was told. If not, to drop the job takes back what was
    /// asked for; not under the lock, which that needs.
    reached: bool,
    answer: Receiver<Answer>,
}

/// Watches a process; none if no such thread can be had, or none that can tell of the
/// event.
pub(super) fn watch(process: &ProcessHandle, event: Event, notify: &Notify) -> Option<TableWatch> {
    loop {
        let asked = lock().ask(process, event, notify)?;
        // Outside of the lock, which the thread may need before it answers.
        match asked.answered()? {
            Answer::Watching => return Some(asked.job),
            Answer::Full if !asked.is_new => lock().set_full(asked.job.thread, true),
            Answer::Full | Answer::Cannot => return None,
        }
    }
}

/// Time after which a nudge counts as lost: an answer takes microseconds.
const ANSWER_WAIT: Duration = Duration::from_millis(20);

/// Most nudges for one request. A program that keeps setting signals to "ignore" can
/// discard every one; then another mechanism has to serve.
const MOST_NUDGES: usize = 10;

impl PendingWatch {
    /// Waits for the answer; none if none will come, or none has for too long.
    fn answered(&self) -> Option<Answer> {
        if !self.reached {
            return None;
        }
        for _ in 0..MOST_NUDGES {
            match self.answer.recv_timeout(ANSWER_WAIT) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let threads = lock();
            let mut list = threads.list.iter();
            let thread = list.find(|one| one.name == self.job.thread)?;
            thread.nudge()?;
        }
        None
    }
}

impl TableThreads {
    fn ask(
        &mut self,
        process: &ProcessHandle,
        event: Event,
        notify: &Notify,
    ) -> Option<PendingWatch> {
        let is_new = self.list.iter().all(|thread| thread.full);
        if is_new {
            self.start()?;
        }
        let id = self.name();
        let thread = self.list.iter().find(|thread| !thread.full)?;
        let (sender, answer) = channel();
        let ended = EndedFlag::default();
        let request = Request::Watch {
            id,
            process: process.by_number(),
            event,
            ended: Arc::clone(&ended),
            notify: notify.clone(),
            answer: sender,
        };
        let job = TableWatch {
            ended,
            thread: thread.name,
            id,
            process: std::process::id(),
        };
        let reached = thread.requests.send(request).is_ok() && thread.nudge().is_some();
        Some(PendingWatch {
            job,
            is_new,
            reached,
            answer,
        })
    }

    fn start(&mut self) -> Option<()> {
        let relay = match &self.relay {
            Some(relay) => relay.clone(),
            None => {
                let (relay, rung) = channel::<Notify>();
                let work = move || rung.iter().for_each(|notify| notify.notify());
                thread::spawn_quiet("procwright-relay", work).ok()?;
                self.relay.insert(relay).clone()
            }
        };
        let (requests, inbox) = channel();
        let (started, address) = channel();
        let name = self.name();
        let work = move || run(name, &inbox, &relay, &started);
        let thread = match thread::spawn_quiet("procwright-table", work) {
            Ok(_) => address.recv().ok(),
            Err(_) => None,
        };
        let Some(thread) = thread else {
            self.leave(name);
            return None;
        };
        self.list.push(TableThread {
            name,
            thread,
            requests,
            full: false,
        });
        Some(())
    }

    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn set_full(&mut self, name: u64, full: bool) {
        if let Some(thread) = self.list.iter_mut().find(|thread| thread.name == name) {
            thread.full = full;
        }
    }

    fn leave(&mut self, name: u64) {
        self.list.retain(|thread| thread.name != name);
        if self.list.is_empty() {
            self.relay = None;
        }
    }
}

impl TableThread {
    /// Tells the thread to look for requests; none if that fails. It is in the list, so
    /// it runs, and takes what was sent before it leaves the list.
    fn nudge(&self) -> Option<()> {
        fd_table::wake_thread(self.thread).ok()
    }
}

impl Drop for TableWatch {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        // None if the thread has ended.
        if let Some(thread) = lock().list.iter().find(|one| one.name == self.thread) {
            // A thread that cannot be nudged now takes this with its next request.
            let _ = thread.requests.send(Request::Forget(self.id));
            let _ = thread.nudge();
        }
    }
}

/// The body of the thread, which ends when it has nothing left to watch.
fn run(name: u64, requests: &Receiver<Request>, relay: &Sender<Notify>, started: &Sender<Tid>) {
    let Ok((ready, nudge)) = enter_own_table() else {
        return;
    };
    if started.send(nudge.tid()).is_err() {
        return;
    }
    let mut members: HashMap<u64, TableMember> = HashMap::new();
    let mut keys = Vec::new();
    let mut had = 0;
    loop {
        while let Ok(request) = requests.try_recv() {
            serve(request, &ready, &mut members, relay);
        }
        {
            let mut threads = lock();
            if members.is_empty() {
                // Requests are sent under this lock, so none is lost.
                match requests.try_recv() {
                    Ok(request) => {
                        drop(threads);
                        serve(request, &ready, &mut members, relay);
                        continue;
                    }
                    Err(_) => return threads.leave(name),
                }
            }
            // Only when a watch has ended: a thread that has just answered that it is
            // full would be asked again at once.
            if members.len() < had {
                threads.set_full(name, false);
            }
            had = members.len();
        }
        keys.clear();
        let waited = ready.wait(&mut keys, Deadline::NEVER);
        if waited.is_err() {
            // Not expected. The notified sets look themselves.
            keys.extend(members.keys());
        }
        for key in &keys {
            match members.remove(key) {
                Some(member) => {
                    member.ended.store(waited.is_ok(), Ordering::Release);
                    // Closed before the notification, whose receiver may need the room.
                    drop(member.pidfd);
                    let _ = relay.send(member.notify);
                }
                None => nudge.silence(),
            }
        }
    }
}

/// Key of the nudge, never that of a watch: those are counted from 1 up.
const NUDGE: u64 = 0;

fn enter_own_table() -> io::Result<(ReadySet, ThreadWake)> {
    fd_table::unshare_empty()?;
    let ready = ReadySet::new()?;
    let nudge = ThreadWake::new()?;
    ready.add(nudge.as_fd(), NUDGE, Interest::Read)?;
    Ok((ready, nudge))
}

fn serve(
    request: Request,
    ready: &ReadySet,
    members: &mut HashMap<u64, TableMember>,
    relay: &Sender<Notify>,
) {
    let (id, process, event, ended, notify, answer) = match request {
        Request::Watch {
            id,
            process,
            event,
            ended,
            notify,
            answer,
        } => (id, process, event, ended, notify, answer),
        Request::Forget(id) => {
            members.remove(&id);
            return;
        }
    };
    let said = match process.pidfd_now() {
        Ok(None) => {
            ended.store(true, Ordering::Release);
            let _ = relay.send(notify);
            Answer::Watching
        }
        Ok(Some(fd)) => match event.told_by(fd.as_fd()) {
            Some(on) if ready.add(fd.as_fd(), id, on).is_ok() => {
                let member = TableMember {
                    pidfd: fd,
                    ended,
                    notify,
                };
                members.insert(id, member);
                Answer::Watching
            }
            _ => Answer::Cannot,
        },
        Err(NoPidfd::Now) => Answer::Full,
        Err(NoPidfd::Never) => Answer::Cannot,
    };
    // The caller of `watch` waits for this.
    let _ = answer.send(said);
}
