//! What one look has seen: processes, threads, descriptors, locks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;

use crate::wait::{Children, Place, Wait};

pub(crate) const SIGCHLD: i32 = 17;

/// All that one look has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) processes: BTreeMap<i32, Process>,
    pub(crate) others: Others,
    /// Who of all is traced, and by whom, if that was asked.
    pub(crate) traced: Option<Vec<(i32, i32)>>,
    /// Numbers of threads of the kernel's own, which are left out.
    pub(crate) kernel: BTreeSet<i32>,
    /// Sockets between processes of this machine, with their peers; 0 if one has none.
    pub(crate) peers: HashMap<u64, u64>,
    /// Processes that wait for a lock of a file, with those that hold it.
    pub(crate) locks: Vec<LockWait>,
    /// Whose the mutexes are that are waited for, by the number of the thread that waits.
    pub(crate) mutexes: BTreeMap<i32, Owner>,
    /// Who has the places in memory of those mutexes that anybody may unlock.
    pub(crate) sharers: BTreeMap<Place, Sharers>,
    pub(crate) unseen: Unseen,
    /// Numbers of the threads of this process that have looked.
    pub(crate) lookers: BTreeSet<i32>,
    /// The calls of processes are shown to those from whom they descend alone.
    pub(crate) ancestors_only: bool,
}

/// What is known of the processes that a look has not among its own.
#[derive(Clone, Debug, Default)]
pub(crate) enum Others {
    /// There are none: all were looked at.
    #[default]
    None,
    /// What they have open, and no more.
    Links(BTreeMap<i32, Vec<Fd>>),
    /// Nothing: nobody has looked for them.
    Unasked,
}

/// When pipes were made, in ticks since boot, of those where it is known.
pub(crate) type Births = HashMap<Object, u64>;

/// What this look could not see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// Processes whose descriptors may not be read.
    pub(crate) processes: Vec<i32>,
    /// `/proc` hides processes of other users (`hidepid`).
    pub(crate) hidepid: bool,
    /// This is a pid namespace, and processes outside of it are not in `/proc`.
    pub(crate) namespace: bool,
    /// Processes came faster than they were looked at.
    pub(crate) hurried: bool,
    /// Processes that may have descriptors that are not listed.
    pub(crate) rings: Vec<i32>,
    /// A descriptor lies in a socket, on its way to somebody.
    pub(crate) in_flight: bool,
    /// Which Unix sockets belong together was not told: whoever waits for one waits for somebody
    /// unknown.
    pub(crate) peers: bool,
}

impl Unseen {
    /// True if somebody could hold an end of a pipe who was not looked at.
    pub(crate) fn anything(&self) -> bool {
        let of_pipes = Unseen {
            peers: false,
            ..self.clone()
        };
        of_pipes != Unseen::default()
    }
}

/// A process that waits for a lock of a file.
#[derive(Clone, Debug)]
pub(crate) struct LockWait {
    pub(crate) waiter: i32,
    pub(crate) holders: Vec<i32>,
}

/// Who holds a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A thread of this process.
    Process {
        pid: i32,
        /// Whether its number can mean no thread of another pid namespace.
        certain: bool,
    },
    /// Nobody any more: the thread has ended with it.
    Gone,
    /// A thread that has not that memory: it has executed another program, or given the memory
    /// up, or its number is another's by now.
    Left,
    /// Somebody who could not be found.
    Unknown,
}

/// The processes that have a place in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sharers {
    pub(crate) pids: BTreeSet<i32>,
    /// Whether the memory of all processes could be looked at.
    pub(crate) all_seen: bool,
}

/// One process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// What it waits for was not asked: it has no `threads` here.
    pub(crate) is_outline: bool,
    pub(crate) pid: i32,
    pub(crate) ppid: i32,
    pub(crate) pgrp: i32,
    pub(crate) name: String,
    /// Start, in ticks since boot: with the number it means this process and no other.
    pub(crate) start: u64,
    pub(crate) uid: Option<u32>,
    pub(crate) tracer: i32,
    /// It is in a pid namespace within ours; of an outline that was not asked.
    pub(crate) nested: bool,
    /// Device number of the controlling terminal, 0 without one.
    pub(crate) terminal: u64,
    /// Foreground process group of that terminal.
    pub(crate) foreground: i32,
    /// Its first thread has ended, and no other is left.
    pub(crate) gone: bool,
    /// The cgroup whose freezer holds it, empty if that is not told.
    pub(crate) frozen: Option<String>,
    /// Signal that has stopped it, 0 if not told.
    pub(crate) stop_signal: i32,
    /// Signals for which it has handlers, bit 0 for signal 1.
    pub(crate) caught: u64,
    /// It has POSIX timers, `None` if that cannot be read; looked at for suspects alone.
    pub(crate) timers: Option<bool>,
    /// A thread sleeps elsewhere in the system than its call does; looked at for suspects
    /// alone.
    pub(crate) elsewhere: bool,
    pub(crate) threads: Vec<Thread>,
    /// How many threads it has, an outline too.
    pub(crate) thread_count: usize,
    /// Descriptors; `None` if they may not be read.
    pub(crate) fds: Option<Vec<Fd>>,
    /// Bytes written by it so far, where it was seen waiting for room.
    pub(crate) written: Option<u64>,
}

/// One thread.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    /// Letter of its state, as `/proc` has it.
    pub(crate) state: char,
    /// How often it was taken from a processor, by its own will and not.
    pub(crate) switches: (u64, u64),
    /// What it has run so far, read before all else; `None` where the system does not count.
    pub(crate) ran: Option<Ran>,
    pub(crate) wait: Wait,
    /// The system call with its arguments, as `/proc` has it.
    pub(crate) call: String,
}

/// What a thread has run so far, as the scheduler counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) nanoseconds: u64,
    /// Nanoseconds for which it has waited for a processor.
    pub(crate) waited: u64,
    /// How often it was given one.
    pub(crate) times: u64,
}

/// One descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fd {
    pub(crate) number: i32,
    pub(crate) of: Object,
    /// Whether it may be read from and written to. One of a pipe for which nobody waits is as
    /// both ends.
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// The thing that a descriptor refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Object {
    Pipe(u64),
    Fifo {
        device: u64,
        inode: u64,
    },
    /// A socket of which no more is known, or one between processes.
    Socket(u64),
    /// A TCP socket, with the address of its other side.
    Connection {
        inode: u64,
        to: SocketAddr,
    },
    /// A TCP socket to which others connect, by this address.
    Listener {
        inode: u64,
        at: SocketAddr,
    },
    /// A terminal, by device number.
    Terminal(u64),
    /// `/dev/tty`: the terminal of whoever asks.
    OwnTerminal,
    /// The end that shows the terminal of this device number.
    TerminalMaster(u64),
    /// A process; -1 if it has ended.
    Process(i32),
    Epoll,
    /// An eventfd, by number where the kernel has one (5.2).
    Eventfd(Option<u32>),
    Timer,
    Signals,
    /// An io_uring, which may have descriptors that are not listed, and calls under way.
    Ring,
    /// A regular file.
    File {
        device: u64,
        inode: u64,
    },
    /// Anything else: a device, inotify.
    Other,
    /// Something with a path, of which it was not asked what it is: in links of others, where a
    /// pipe alone is looked for.
    Path,
}

impl Object {
    /// The number of a socket.
    pub(crate) fn socket(self) -> Option<u64> {
        match self {
            Object::Socket(inode)
            | Object::Connection { inode, .. }
            | Object::Listener { inode, .. } => Some(inode),
            _ => None,
        }
    }
}

impl World {
    /// Adds the processes that one thread has looked at.
    pub(crate) fn append(&mut self, looker: i32, mut part: World) {
        self.lookers.insert(looker);
        self.processes.append(&mut part.processes);
        self.kernel.append(&mut part.kernel);
        self.unseen.processes.append(&mut part.unseen.processes);
        self.unseen.processes.sort_unstable();
    }

    /// The socket on the other side of this one, if it is of this machine.
    pub(crate) fn peer(&self, inode: u64) -> Option<u64> {
        self.peers.get(&inode).copied().filter(|peer| *peer != 0)
    }

    /// True if some were not asked what they wait for.
    pub(crate) fn is_partial(&self) -> bool {
        let mut all = self.processes.values();
        !matches!(self.others, Others::None) || all.any(|process| process.is_outline)
    }

    /// True if this one goes on and was not asked what it waits for.
    pub(crate) fn is_outline(&self, pid: i32) -> bool {
        let process = self.processes.get(&pid);
        process.is_some_and(|process| process.is_outline && !process.gone)
    }

    /// Those of whom it was found that a freezer holds them.
    pub(crate) fn frozen(&self) -> BTreeSet<i32> {
        let all = self.processes.values();
        let frozen = all.filter(|process| process.frozen.is_some());
        frozen.map(|process| process.pid).collect()
    }

    /// Those whose end could release one of these processes: the child that one waits for, or all
    /// that it has.
    pub(crate) fn awaited(&self, pids: &BTreeSet<i32>) -> BTreeSet<i32> {
        let (mut ends, mut parents) = (BTreeSet::new(), BTreeSet::new());
        for process in pids.iter().filter_map(|pid| self.processes.get(pid)) {
            match process.awaited() {
                Some(awaited) => ends.extend(awaited),
                None => _ = parents.insert(process.pid),
            }
        }
        let all = self.processes.values();
        let children = all.filter(|process| parents.contains(&process.ppid));
        ends.extend(children.map(|process| process.pid));
        ends
    }

    /// These processes, and all that descend from them.
    pub(crate) fn with_descendants(&self, mut pids: BTreeSet<i32>) -> BTreeSet<i32> {
        loop {
            let before = pids.len();
            for process in self.processes.values() {
                if pids.contains(&process.ppid) {
                    pids.insert(process.pid);
                }
            }
            if pids.len() == before {
                return pids;
            }
        }
    }
}

impl Process {
    pub(crate) fn fd(&self, number: i32) -> Option<&Fd> {
        self.fds.as_ref()?.iter().find(|fd| fd.number == number)
    }

    /// True if the descriptor is the terminal that controls this process.
    pub(crate) fn is_own_terminal(&self, fd: &Fd) -> bool {
        match fd.of {
            Object::OwnTerminal => true,
            Object::Terminal(device) => device == self.terminal && self.terminal != 0,
            _ => false,
        }
    }

    /// True if its reads from its terminal get what is typed there.
    pub(crate) fn in_foreground(&self) -> bool {
        self.terminal != 0 && self.foreground == self.pgrp
    }

    /// True if what it waits for may not be looked at.
    pub(crate) fn is_hidden(&self) -> bool {
        !self.gone && (self.fds.is_none() || self.threads.iter().any(|t| t.wait.is_hidden()))
    }

    /// True if a thread is in a call that was interrupted, of which the kernel does not tell
    /// which it is.
    pub(crate) fn is_restarted(&self) -> bool {
        self.threads.iter().any(|t| t.wait == Wait::Restarted)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        let mut living = self.threads.iter().filter(|t| t.wait != Wait::Ended);
        let stands = |wait: &Wait| matches!(wait, Wait::Stopped | Wait::Frozen);
        living.clone().next().is_some() && living.all(|t| stands(&t.wait))
    }

    /// True if a thread waits for room in a pipe.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.threads.iter().any(|thread| match thread.wait {
            Wait::Write(number) => {
                let of = self.fd(number).map(|fd| fd.of);
                matches!(of, Some(Object::Pipe(_) | Object::Fifo { .. }))
            }
            _ => false,
        })
    }

    /// True if it may have descriptors that are not listed, and calls under way.
    pub(crate) fn has_ring(&self) -> bool {
        self.fds.iter().flatten().any(|fd| fd.of == Object::Ring)
    }

    /// Whose end could release it, of its children and of those that it traces; `None` if that of
    /// any could.
    pub(crate) fn awaited(&self) -> Option<Vec<i32>> {
        if self.catches(SIGCHLD) {
            return None;
        }
        let ends = self.threads.iter().filter_map(|thread| match thread.wait {
            Wait::Child(Children::One(pid)) => Some(Some(pid)),
            Wait::Child(_) | Wait::Hidden(_) => Some(None),
            _ => None,
        });
        ends.collect()
    }

    /// True if it is the process that a look has seen as `before`, and no thread of it has run
    /// since.
    pub(crate) fn has_slept_since(&self, before: &Process) -> bool {
        let mut pairs = self.threads.iter().zip(&before.threads);
        self.start == before.start
            && self.threads.len() == before.threads.len()
            && pairs.all(|(thread, before)| thread.has_slept_since(before))
    }

    pub(crate) fn catches(&self, signal: i32) -> bool {
        self.caught & (1 << (signal - 1)) != 0
    }
}

impl Thread {
    /// True if it waits as it did when a look has seen it as `before`, and has not run since.
    pub(crate) fn has_slept_since(&self, before: &Thread) -> bool {
        (self.tid, self.switches, self.ran) == (before.tid, before.switches, before.ran)
            && (&self.call, &self.wait) == (&before.call, &before.wait)
    }
}
