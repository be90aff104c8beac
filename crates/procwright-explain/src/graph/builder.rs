//! From what one look has seen to edges, freedom and doubts.

use std::collections::{BTreeMap, HashMap};

use super::node::{Doubt, Edge, Free, Node, Why};
use crate::wait::{Children, Mutex, Place, Wait};
use crate::world::{Births, Fd, Object, Owner, Process, Thread, World};

/// A process that has something open.
#[derive(Clone, Copy)]
struct Holder {
    pid: i32,
    fd: i32,
    read: bool,
    write: bool,
}

/// Adds what one look tells.
pub(super) struct Builder<'w> {
    world: &'w World,
    births: &'w Births,
    holders: HashMap<Object, Vec<Holder>>,
    pub(super) children: HashMap<i32, Vec<&'w Process>>,
}

/// What a process has open that others may have as well, each as it is waited for.
fn shared_by(process: &Process) -> impl Iterator<Item = (Object, &Fd)> {
    let fds = process.fds.iter().flatten();
    fds.filter_map(|fd| {
        let of = match fd.of {
            Object::OwnTerminal => Object::Terminal(process.terminal),
            Object::Connection { inode, .. } | Object::Listener { inode, .. } => {
                Object::Socket(inode)
            }
            of => of,
        };
        let is_shared = matches!(
            of,
            Object::Pipe(_)
                | Object::Fifo { .. }
                | Object::Socket(_)
                | Object::Terminal(_)
                | Object::TerminalMaster(_)
                | Object::Eventfd(Some(_))
        );
        is_shared.then_some((of, fd))
    })
}

impl<'w> Builder<'w> {
    pub(super) fn new(world: &'w World, births: &'w Births) -> Builder<'w> {
        let all = world.processes.values();
        let shared = || {
            all.clone()
                .flat_map(|one| shared_by(one).map(move |held| (one, held)))
        };
        let mut holders: HashMap<Object, Vec<Holder>> = HashMap::with_capacity(shared().count());
        for (process, (of, fd)) in shared() {
            holders.entry(of).or_default().push(Holder {
                pid: process.pid,
                fd: fd.number,
                read: fd.read,
                write: fd.write,
            });
        }
        let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
        for process in all {
            children.entry(process.ppid).or_default().push(process);
            if process.tracer != 0 && process.tracer != process.ppid {
                children.entry(process.tracer).or_default().push(process);
            }
        }
        Builder {
            world,
            births,
            holders,
            children,
        }
    }

    pub(super) fn add_to(&self, nodes: &mut BTreeMap<i32, Node>) {
        let all = self.world.processes.values();
        for process in all.filter(|process| !process.gone && !process.is_outline) {
            let node = nodes.entry(process.pid).or_default();
            if process.threads.is_empty() {
                node.add_doubt(Doubt::Threads);
            }
            for thread in &process.threads {
                self.add_wait(node, process, thread);
            }
            self.add_signals(node, process);
        }
    }

    fn add_wait(&self, node: &mut Node, process: &Process, thread: &Thread) {
        let mut at = At {
            node,
            process,
            tid: thread.tid,
        };
        match &thread.wait {
            Wait::Runs => at.node.add_free(Free::Runs),
            Wait::Read(fd) => self.descriptor(&mut at, *fd, Way::Read, false),
            Wait::Write(fd) => self.descriptor(&mut at, *fd, Way::Write, false),
            Wait::Set {
                read,
                write,
                finite,
            } => self.set(&mut at, read, write, *finite),
            Wait::HiddenSet { finite } => {
                at.node.add_doubt(Doubt::HiddenSet);
                if *finite {
                    at.node.add_free(Free::Timer);
                }
            }
            Wait::Child(which) => self.child(&mut at, *which),
            Wait::FileLock(_) => self.file_lock(&mut at),
            Wait::Futex {
                mutex: Some(mutex), ..
            } => self.mutex(&mut at, mutex),
            Wait::Futex { private: true, .. } => {}
            Wait::Futex { private: false, .. } => at.node.add_doubt(Doubt::SharedMemory),
            Wait::FifoPartner(_) => at.node.add_doubt(Doubt::OpenedByName),
            Wait::Time => at.node.add_free(Free::Timer),
            Wait::Signal => at.node.add_free(Free::Signal),
            Wait::Accept(_) | Wait::Connect(_) => at.node.add_free(Free::Peer),
            Wait::Uninterruptible(_) => at.node.add_doubt(Doubt::Uninterruptible),
            Wait::Restarted => at.node.add_doubt(Doubt::RestartedCall),
            Wait::Other(_) => at.node.add_doubt(Doubt::OtherCall),
            Wait::Hidden(place) => self.hidden(&mut at, place),
            Wait::Stopped | Wait::Frozen => at.node.add_free(Free::Stopped),
            Wait::Traced => at.node.add_free(Free::Debugger),
            Wait::Ended => {}
        }
    }

    /// A wait of which only the place in the kernel is known: edges for the picture, and a
    /// doubt.
    fn hidden(&self, at: &mut At<'_>, place: &str) {
        at.node.add_doubt(Doubt::HiddenCall);
        // "pipe_read" until 6.14, "anon_pipe_read" from 6.15.
        let way = match place {
            _ if place.ends_with("pipe_read") => Way::Read,
            _ if place.ends_with("pipe_write") => Way::Write,
            "do_wait" => return self.child(at, Children::Any),
            _ if place.contains("nanosleep") => return at.node.add_free(Free::Timer),
            _ if place.starts_with("futex") => return,
            // Who is to say, of all others, whether time ends them.
            _ => return at.node.add_free(Free::Peer),
        };
        let process = at.process;
        for fd in process.fds.iter().flatten() {
            let fits = matches!(fd.of, Object::Pipe(_) | Object::Fifo { .. })
                && (way == Way::Read && fd.read || way == Way::Write && fd.write);
            if fits {
                self.descriptor(at, fd.number, way, true);
            }
        }
    }

    fn set(&self, at: &mut At<'_>, read: &[i32], write: &[i32], finite: bool) {
        if finite {
            at.node.add_free(Free::Timer);
        }
        let process = at.process;
        let is_input = |fd: &i32| {
            let fd = process.fd(*fd);
            fd.is_some_and(|fd| process.is_own_terminal(fd)) && process.in_foreground()
        };
        let for_input = read.iter().find(|fd| is_input(fd));
        // A terminal beside others that may end the wait is no proof that a person has to.
        let others = read.iter().chain(write).any(|fd| {
            let fd = process.fd(*fd);
            fd.is_none_or(|fd| !process.is_own_terminal(fd) && self.is_of_others(process, fd))
        });
        if let Some(fd) = for_input {
            at.node.add_free(match (others, finite) {
                (true, _) => Free::Peer,
                (false, true) => Free::TimedInput(*fd),
                (false, false) => Free::Input(*fd),
            });
        }
        for (fds, way) in [(read, Way::Read), (write, Way::Write)] {
            for fd in fds.iter().filter(|fd| way == Way::Write || !is_input(fd)) {
                self.descriptor(at, *fd, way, true);
            }
        }
    }

    /// True if somebody else than this process could have this descriptor become ready.
    fn is_of_others(&self, process: &Process, fd: &Fd) -> bool {
        match fd.of {
            Object::Pipe(_) | Object::Fifo { .. } => {
                let mut holders = self.holders.get(&fd.of).into_iter().flatten();
                holders.any(|holder| {
                    holder.pid != process.pid
                        && (fd.read && holder.write || fd.write && holder.read)
                })
            }
            Object::Socket(inode) | Object::Connection { inode, .. } => {
                match self.world.peer(inode) {
                    Some(peer) => self.others_hold(process, Object::Socket(peer)),
                    None => true,
                }
            }
            Object::Eventfd(Some(_)) => self.others_hold(process, fd.of),
            // Timers and signals are its own affair, and its event loop's eventfd is too.
            Object::Eventfd(None) | Object::Signals | Object::Epoll | Object::Ring => false,
            _ => true,
        }
    }

    /// True if another process than this one has `of` open.
    fn others_hold(&self, process: &Process, of: Object) -> bool {
        let mut holders = self.holders.get(&of).into_iter().flatten();
        holders.any(|holder| holder.pid != process.pid)
    }

    /// A wait for a descriptor.
    fn descriptor(&self, at: &mut At<'_>, number: i32, way: Way, set: bool) {
        let process = at.process;
        if process.fds.is_none() {
            return at.node.add_doubt(Doubt::HiddenDescriptors);
        }
        let Some(fd) = process.fd(number) else {
            return at.node.add_doubt(Doubt::OtherCall);
        };
        match fd.of {
            Object::Pipe(_) | Object::Fifo { .. } => {
                if matches!(fd.of, Object::Fifo { .. }) {
                    at.node.add_doubt(Doubt::OpenedByName);
                }
                // In a set the errors of a descriptor count, too: those of its other side. And
                // vmsplice goes either way, as its descriptor does.
                let way = match (fd.read, fd.write) {
                    (true, false) => Way::Read,
                    (false, true) => Way::Write,
                    _ => way,
                };
                let fits = |holder: &&Holder| match way {
                    Way::Read => holder.write,
                    Way::Write => holder.read,
                };
                self.holders(at, fd, fd.of, way, set, &fits);
            }
            Object::Socket(inode) | Object::Connection { inode, .. } => {
                match self.world.peer(inode) {
                    None => at.node.add_free(Free::Peer),
                    Some(peer) => {
                        at.node.add_doubt(Doubt::SocketTimeLimit);
                        self.holders(at, fd, Object::Socket(peer), way, set, &|_| true);
                    }
                }
            }
            Object::Listener { .. } => at.node.add_free(Free::Peer),
            Object::Terminal(_) | Object::OwnTerminal => {
                let own = process.is_own_terminal(fd);
                if way == Way::Read && own && process.in_foreground() && !set {
                    return at.node.add_free(Free::Input(number));
                }
                at.node.add_doubt(Doubt::Terminal);
                let device = match fd.of {
                    Object::Terminal(device) => device,
                    _ => process.terminal,
                };
                let master = Object::TerminalMaster(device);
                self.holders(at, fd, master, way, set, &|_| true);
            }
            Object::TerminalMaster(device) => {
                at.node.add_doubt(Doubt::Terminal);
                self.holders(at, fd, Object::Terminal(device), way, set, &|_| true);
            }
            Object::Process(pid) if self.world.processes.contains_key(&pid) => {
                at.edge(pid, Why::Ends);
            }
            Object::Process(_) => at.node.add_doubt(Doubt::NobodySeen),
            Object::Epoll | Object::Ring => at.node.add_doubt(Doubt::OtherCall),
            Object::Eventfd(_) => self.eventfd(at, fd, way, set),
            Object::Timer => at.node.add_free(Free::Timer),
            Object::Signals => at.node.add_free(Free::Signal),
            Object::File { .. } | Object::Path | Object::Other => at.node.add_free(Free::Device),
        }
    }

    /// A wait for an eventfd. Other threads of its own process may end it as well, and they
    /// count without an edge: whoever has it for its event loop alone is in no circle. The system
    /// counts one up for a device, for a file and for a virtual machine.
    fn eventfd(&self, at: &mut At<'_>, fd: &Fd, way: Way, set: bool) {
        at.node.add_doubt(Doubt::Eventfd);
        let own = at.process.pid;
        let all = self.holders.get(&fd.of).into_iter().flatten();
        for holder in all.filter(|holder| holder.pid != own) {
            at.edge(holder.pid, way.why(fd, holder.fd, set));
        }
    }

    /// Edges to those who hold `of`, as the other side of `fd`.
    fn holders(
        &self,
        at: &mut At<'_>,
        fd: &Fd,
        of: Object,
        way: Way,
        set: bool,
        fits: &dyn Fn(&&Holder) -> bool,
    ) {
        let all = self.holders.get(&of).into_iter().flatten();
        let mut nobody = true;
        for holder in all.filter(fits) {
            nobody = false;
            at.edge(holder.pid, way.why(fd, holder.fd, set));
        }
        if nobody {
            at.node.add_doubt(Doubt::NobodySeen);
        }
        if self.unseen_may_hold(of) {
            at.node.add_doubt(Doubt::UnseenHolder);
        }
    }

    /// True if somebody who was not looked at could have `of` open.
    ///
    /// Who was made before a pipe has an end of it only if he has made it himself. Where such
    /// a one is seen to hold it, he is who has made it, and all others who have it descend
    /// from him and are younger than the pipe. (Or a socket has brought it to them.)
    fn unseen_may_hold(&self, of: Object) -> bool {
        let unseen = &self.world.unseen;
        if !unseen.anything() {
            return false;
        }
        let Some(&born) = self.births.get(&of) else {
            return true;
        };
        let is_older = |pid: i32| {
            let process = self.world.processes.get(&pid);
            process.is_some_and(|process| process.start + TICKS_BETWEEN < born)
        };
        let holders = || self.holders.get(&of).into_iter().flatten();
        let maker_is_seen = holders().any(|holder| is_older(holder.pid));
        let hidden = unseen.hidepid || unseen.hurried || unseen.in_flight;
        // Who has made it may have an end in a ring, besides that which is seen.
        let in_ring = |pid: i32| !is_older(pid) || holders().any(|holder| holder.pid == pid);
        hidden
            || !maker_is_seen
            || !unseen.processes.iter().all(|&pid| is_older(pid))
            || unseen.rings.iter().any(|&pid| in_ring(pid))
    }

    fn child(&self, at: &mut At<'_>, which: Children) {
        let process = at.process;
        let children = self.children.get(&process.pid).into_iter().flatten();
        let group = |pgrp: i32| if pgrp == 0 { process.pgrp } else { pgrp };
        let meant: Vec<&&Process> = children
            .filter(|child| match which {
                Children::Any | Children::Vfork => true,
                Children::One(pid) => child.pid == pid,
                Children::Group(pgrp) => child.pgrp == group(pgrp),
            })
            .collect();
        if meant.is_empty() {
            at.node.add_doubt(Doubt::NobodySeen);
        }
        for child in meant {
            if child.gone && which != Children::Vfork {
                // It has ended, so that the wait is over.
                at.node.add_free(Free::Runs);
            }
            at.edge(child.pid, Why::Ends);
        }
    }

    fn file_lock(&self, at: &mut At<'_>) {
        let pid = at.process.pid;
        let waits = self.world.locks.iter().filter(|lock| lock.waiter == pid);
        let holders: Vec<i32> = waits.flat_map(|lock| lock.holders.clone()).collect();
        if holders.is_empty() {
            at.node.add_doubt(Doubt::LockHolder);
        }
        if self.world.unseen.anything() {
            at.node.add_doubt(Doubt::UnseenHolder);
        }
        for holder in holders {
            at.edge(holder, Why::Unlocks);
        }
    }

    /// A wait for a mutex in shared memory, which its holder alone gives back. One that another
    /// thread of its own process holds is as one of that process alone, unless the threads wait
    /// for each other. Where the C library does not ask who unlocks it, others may.
    fn mutex(&self, at: &mut At<'_>, mutex: &Mutex) {
        let own = at.process.pid;
        match self.world.mutexes.get(&at.tid) {
            Some(&Owner::Process { pid, certain }) => {
                if !certain {
                    at.node.add_doubt(Doubt::MutexHolder);
                }
                if pid != own || waits_for_itself(at.process, at.tid, mutex) {
                    at.edge(pid, Why::Mutex);
                }
            }
            Some(gone @ (Owner::Gone | Owner::Left)) => {
                let (owner, ended) = (mutex.owner, *gone == Owner::Gone);
                if !ended {
                    at.node.add_doubt(Doubt::MutexLeft);
                }
                at.edge(own, Why::Abandoned { owner, ended });
            }
            Some(Owner::Unknown) | None => at.node.add_doubt(Doubt::SharedMemory),
        }
        if mutex.anyone_unlocks {
            self.others_may_unlock(at, &mutex.place);
        }
    }

    fn others_may_unlock(&self, at: &mut At<'_>, place: &Place) {
        let own = at.process.pid;
        let sharers = self.world.sharers.get(place);
        if !sharers.is_some_and(|sharers| sharers.all_seen) {
            at.node.add_doubt(Doubt::UnseenUnlocker);
        }
        let pids = sharers.into_iter().flat_map(|sharers| &sharers.pids);
        for &pid in pids.filter(|pid| **pid != own) {
            at.edge(pid, Why::MayUnlock);
        }
    }
}

/// True if this thread waits for a mutex that it holds itself, or that another thread of the
/// process does which waits for it in turn.
fn waits_for_itself(process: &Process, tid: i32, mutex: &Mutex) -> bool {
    let next = |owner: &i32| {
        let mut threads = process.threads.iter();
        let holder = threads.find(|thread| thread.tid == *owner)?;
        match &holder.wait {
            Wait::Futex { mutex, .. } => mutex.as_ref().map(|mutex| mutex.owner),
            _ => None,
        }
    };
    let owners = std::iter::successors(Some(mutex.owner), next);
    // A circle of others has no end.
    let mut owners = owners.take(process.threads.len());
    owners.any(|owner| owner == tid)
}

/// Ticks by which a process has to be older than a pipe to be certainly so: both times are
/// rounded down.
const TICKS_BETWEEN: u64 = 3;

/// A thread of a process whose waits are added.
pub(super) struct At<'a> {
    pub(super) node: &'a mut Node,
    pub(super) process: &'a Process,
    pub(super) tid: i32,
}

impl At<'_> {
    pub(super) fn edge(&mut self, to: i32, why: Why) {
        let (from, tid) = (self.process.pid, self.tid);
        self.node.edges.push(Edge { from, tid, to, why });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

impl Way {
    /// A wait by `fd` for who has the other end as `end`.
    fn why(self, fd: &Fd, end: i32, set: bool) -> Why {
        let (fd, of) = (fd.number, fd.of);
        match self {
            Way::Read => Why::Reads { fd, of, end, set },
            Way::Write => Why::Writes { fd, of, end, set },
        }
    }
}
