//! Who could end whose wait.
//!
//! An edge goes from a process to one that could end a wait of it: by a write, a read, a
//! close, its end, an unlock. Edges are alternatives: any one of them may do. Besides, a
//! process may be free to go on without any other, and there may be doubts, things that
//! were not seen and could release it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::wait::{Children, Wait};
use crate::world::{Births, Fd, Object, Process, SIGCHLD, Thread, World};

/// The processes, and who could end whose wait. One of which there is but an outline has no
/// node here, as one that has ended: it may do anything.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: BTreeMap<i32, Node>,
}

/// One process.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) edges: Vec<Edge>,
    pub(crate) free: Vec<Free>,
    pub(crate) doubts: Vec<Doubt>,
}

/// A process that could end a wait of another, or its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Edge {
    pub(crate) from: i32,
    pub(crate) tid: i32,
    pub(crate) to: i32,
    pub(crate) why: Why,
}

/// The way in which one process waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Why {
    /// It reads what the other could write, or whose end the other could bring about.
    Reads {
        /// Descriptor of who waits.
        fd: i32,
        of: Object,
        /// Descriptor of the other.
        end: i32,
        /// It waits for others as well.
        set: bool,
    },
    /// It writes where the other could read, or close.
    Writes {
        fd: i32,
        of: Object,
        end: i32,
        set: bool,
    },
    /// The other is its child, or the process that it waits for.
    Ends,
    /// The other holds a lock of a file.
    Unlocks,
    /// A signal of the other's end would be handled.
    ChildSignal,
}

/// The reason why a process goes on, or is released from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Free {
    /// It runs.
    Runs,
    /// It has run between the two looks, or is not the same.
    Moves,
    /// Time ends its wait.
    Timer,
    /// The network, or whoever connects.
    Peer,
    /// A person at its terminal, read from this descriptor.
    Input(i32),
    /// A signal that it waits for.
    Signal,
    /// It is stopped, and SIGCONT would have it go on.
    Stopped,
    /// A debugger holds it.
    Debugger,
    /// A device, or changes of files.
    Device,
}

/// Something that was not seen and could release a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    /// The call that it sleeps in may not be read.
    HiddenCall,
    /// Its descriptors may not be read.
    HiddenDescriptors,
    /// Which descriptors it waits for could not be read.
    HiddenSet,
    /// Who ends this call is not known.
    OtherCall,
    /// It waits for a word in memory that other processes may have as well.
    SharedMemory,
    /// Somebody who may not be looked at could hold an end.
    UnseenHolder,
    /// Nobody who was seen has the other end, so somebody unseen must.
    NobodySeen,
    /// Anybody may open a FIFO by its name.
    OpenedByName,
    /// A socket may have a time limit that cannot be seen.
    SocketTimeLimit,
    /// A terminal may be held up by Ctrl-S, or its reader by a time limit.
    Terminal,
    /// A handler of a signal could release it.
    Handler,
    /// The system works for it, or waits for a device.
    Uninterruptible,
    /// Who counts an eventfd up is not known.
    Eventfd,
    /// Who holds a lock of a file is not known.
    LockHolder,
    /// A thread could not be told from one that has come or gone.
    Threads,
    /// It sleeps elsewhere in the system than its call does.
    Elsewhere,
    /// Whether it has timers could not be read.
    Timers,
    /// An io_uring of it may have a call under way.
    Ring,
}

impl Graph {
    /// The graph of two looks. An edge or a doubt of either counts.
    pub(crate) fn of(first: &World, second: &World, births: &Births) -> Graph {
        let mut graph = Graph::default();
        for world in [first, second] {
            Builder::new(world, births).add_to(&mut graph);
        }
        for (pid, node) in &mut graph.nodes {
            node.drop_repeated_edges();
            let before = first.processes.get(pid);
            let after = second.processes.get(pid);
            let slept = before.zip(after).is_some_and(|(a, b)| has_slept(a, b));
            if !slept {
                node.add_free(Free::Moves);
            }
        }
        graph
    }

    /// The graph of one look, as if nobody ran from then on.
    pub(crate) fn of_one(world: &World) -> Graph {
        let mut graph = Graph::default();
        Builder::new(world, &Births::new()).add_to(&mut graph);
        graph
    }

    /// These processes, and all to whom edges lead from them.
    pub(crate) fn reached(&self, pids: &BTreeSet<i32>) -> BTreeSet<i32> {
        let mut found = pids.clone();
        let mut todo: Vec<i32> = pids.iter().copied().collect();
        while let Some(pid) = todo.pop() {
            for edge in self.node(pid).into_iter().flat_map(|node| &node.edges) {
                if found.insert(edge.to) {
                    todo.push(edge.to);
                }
            }
        }
        found
    }

    pub(crate) fn node(&self, pid: i32) -> Option<&Node> {
        self.nodes.get(&pid)
    }
}

/// True if it is the same process, and no thread of it has run between the looks.
fn has_slept(before: &Process, after: &Process) -> bool {
    let same = |a: &Thread, b: &Thread| {
        (a.tid, a.switches, &a.call, &a.wait) == (b.tid, b.switches, &b.call, &b.wait)
    };
    before.start == after.start
        && before.threads.len() == after.threads.len()
        && before
            .threads
            .iter()
            .zip(&after.threads)
            .all(|(a, b)| same(a, b))
}

impl Node {
    /// A copy; without what sets it free if `frozen`.
    pub(crate) fn clone_without_freedom(&self, frozen: bool) -> Node {
        Node {
            edges: if frozen {
                Vec::new()
            } else {
                self.edges.clone()
            },
            free: if frozen {
                Vec::new()
            } else {
                self.free.clone()
            },
            doubts: self.doubts.clone(),
        }
    }

    fn add_free(&mut self, free: Free) {
        if !self.free.contains(&free) {
            self.free.push(free);
        }
    }

    fn add_doubt(&mut self, doubt: Doubt) {
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    /// Leaves each edge once, the first, at a cost that goes with their number.
    fn drop_repeated_edges(&mut self) {
        let mut seen = HashSet::with_capacity(self.edges.len());
        self.edges.retain(|edge| seen.insert(edge.clone()));
    }
}

/// A process that has something open.
#[derive(Clone, Copy)]
struct Holder {
    pid: i32,
    fd: i32,
    read: bool,
    write: bool,
}

/// Adds what one look tells.
struct Builder<'w> {
    world: &'w World,
    births: &'w Births,
    holders: HashMap<Object, Vec<Holder>>,
    children: HashMap<i32, Vec<&'w Process>>,
}

impl<'w> Builder<'w> {
    fn new(world: &'w World, births: &'w Births) -> Builder<'w> {
        let mut holders: HashMap<Object, Vec<Holder>> = HashMap::new();
        let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
        for process in world.processes.values() {
            children.entry(process.ppid).or_default().push(process);
            if process.tracer != 0 && process.tracer != process.ppid {
                children.entry(process.tracer).or_default().push(process);
            }
            for fd in process.fds.iter().flatten() {
                let of = match fd.of {
                    Object::OwnTerminal => Object::Terminal(process.terminal),
                    of => of,
                };
                let shared = matches!(
                    of,
                    Object::Pipe(_)
                        | Object::Fifo { .. }
                        | Object::Socket(_)
                        | Object::Terminal(_)
                        | Object::TerminalMaster(_)
                );
                if shared {
                    holders.entry(of).or_default().push(Holder {
                        pid: process.pid,
                        fd: fd.number,
                        read: fd.read,
                        write: fd.write,
                    });
                }
            }
        }
        Builder {
            world,
            births,
            holders,
            children,
        }
    }

    fn add_to(&self, graph: &mut Graph) {
        let all = self.world.processes.values();
        for process in all.filter(|process| !process.gone && !process.is_outline) {
            let node = graph.nodes.entry(process.pid).or_default();
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
            Wait::Futex { private: true } => {}
            Wait::Futex { private: false } => at.node.add_doubt(Doubt::SharedMemory),
            Wait::FifoPartner(_) => at.node.add_doubt(Doubt::OpenedByName),
            Wait::Time => at.node.add_free(Free::Timer),
            Wait::Signal => at.node.add_free(Free::Signal),
            Wait::Peer => at.node.add_free(Free::Peer),
            Wait::Uninterruptible(_) => at.node.add_doubt(Doubt::Uninterruptible),
            Wait::Other(_) => at.node.add_doubt(Doubt::OtherCall),
            Wait::Hidden(place) => self.hidden(&mut at, place),
            Wait::Stopped => at.node.add_free(Free::Stopped),
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
            at.node.add_free(match finite || others {
                true => Free::Peer,
                false => Free::Input(*fd),
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
            Object::Socket(inode) => match self.world.peers.get(&inode) {
                Some(peer) => {
                    let mut holders = self
                        .holders
                        .get(&Object::Socket(*peer))
                        .into_iter()
                        .flatten();
                    holders.any(|holder| holder.pid != process.pid)
                }
                None => true,
            },
            // Timers and signals are its own affair, and its event loop's eventfd is too.
            Object::Eventfd | Object::Signals | Object::Epoll | Object::Ring => false,
            _ => true,
        }
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
            Object::Socket(inode) => match self.world.peers.get(&inode) {
                Some(0) | None => at.node.add_free(Free::Peer),
                Some(peer) => {
                    at.node.add_doubt(Doubt::SocketTimeLimit);
                    self.holders(at, fd, Object::Socket(*peer), way, set, &|_| true);
                }
            },
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
            Object::Eventfd => at.node.add_doubt(Doubt::Eventfd),
            Object::Timer => at.node.add_free(Free::Timer),
            Object::Signals => at.node.add_free(Free::Signal),
            Object::File { .. } | Object::Other => at.node.add_free(Free::Device),
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
            let (fd, of, end) = (fd.number, fd.of, holder.fd);
            let why = match way {
                Way::Read => Why::Reads { fd, of, end, set },
                Way::Write => Why::Writes { fd, of, end, set },
            };
            at.edge(holder.pid, why);
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

    /// What handlers of signals, and timers, could do.
    fn add_signals(&self, node: &mut Node, process: &Process) {
        match process.timers {
            Some(true) => node.add_free(Free::Timer),
            Some(false) => {}
            None => node.add_doubt(Doubt::Timers),
        }
        if process.elsewhere {
            node.add_doubt(Doubt::Elsewhere);
        }
        if process.has_ring() {
            node.add_doubt(Doubt::Ring);
        }
        if process.caught & !QUIET_SIGNALS != 0 {
            node.add_doubt(Doubt::Handler);
        }
        let feeds_itself = node.edges.iter().any(|edge| {
            let conduit = matches!(edge.why, Why::Reads { .. } | Why::Writes { .. });
            conduit && edge.to == process.pid
        });
        // A pipe to oneself is how a handler tells the loop of a signal, of SIGINT too.
        if feeds_itself && process.caught & !FAULTS != 0 {
            node.add_doubt(Doubt::Handler);
        }
        if process.catches(SIGCHLD) {
            let children = self.children.get(&process.pid).into_iter().flatten();
            // One that has ended has sent its signal.
            for child in children.filter(|child| !child.gone) {
                let mut at = At {
                    node,
                    process,
                    tid: process.pid,
                };
                at.edge(child.pid, Why::ChildSignal);
            }
        }
    }
}

/// Ticks by which a process has to be older than a pipe to be certainly so: both times are
/// rounded down.
const TICKS_BETWEEN: u64 = 3;

const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS, which come from what a program itself does, and
/// those that the C library has for itself (glibc: 32 and 33; a program's SIGRTMIN is 34).
const FAULTS: u64 =
    bit(4) | bit(5) | bit(6) | bit(7) | bit(8) | bit(11) | bit(31) | bit(32) | bit(33);

/// Signals that nobody sends unless a person, an end or a job's state makes him: HUP, INT,
/// QUIT, PIPE, TERM, CHLD, CONT, TSTP, TTIN, TTOU, URG, XCPU, XFSZ, WINCH. A handler of
/// another, of ALRM or USR1, may be there to be called by itself.
const QUIET_SIGNALS: u64 = FAULTS
    | bit(1)
    | bit(2)
    | bit(3)
    | bit(13)
    | bit(15)
    | bit(17)
    | bit(18)
    | bit(20)
    | bit(21)
    | bit(22)
    | bit(23)
    | bit(24)
    | bit(25)
    | bit(28);

/// A thread of a process whose waits are added.
struct At<'a> {
    node: &'a mut Node,
    process: &'a Process,
    tid: i32,
}

impl At<'_> {
    fn edge(&mut self, to: i32, why: Why) {
        let (from, tid) = (self.process.pid, self.tid);
        self.node.edges.push(Edge { from, tid, to, why });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knot::{Doubts, stuck};

    /// Two processes that read from each other.
    fn pair(switches: u64) -> World {
        let mut world = World::default();
        for (pid, from, to) in [(10, 1, 2), (11, 2, 1)] {
            let fd = |number, pipe, write: bool| Fd {
                number,
                of: Object::Pipe(pipe),
                read: !write,
                write,
            };
            let thread = Thread {
                tid: pid,
                switches: (switches, 0),
                wait: Wait::Read(0),
                call: String::from("0 0x0"),
            };
            let process = Process {
                is_outline: false,
                pid,
                ppid: 1,
                pgrp: pid,
                name: String::from("one"),
                start: 1_000,
                uid: Some(0),
                tracer: 0,
                terminal: 0,
                foreground: -1,
                gone: false,
                stop_signal: 0,
                caught: 0,
                timers: Some(false),
                elsewhere: false,
                threads: vec![thread],
                thread_count: 1,
                fds: Some(vec![fd(0, from, false), fd(1, to, true)]),
                written: None,
            };
            world.processes.insert(pid, process);
        }
        world
    }

    /// How many are stuck for certain.
    fn proven(first: &World, second: &World, births: &Births) -> usize {
        stuck(&Graph::of(first, second, births), Doubts::Release).len()
    }

    #[test]
    fn who_has_run_between_the_looks_is_free() {
        let none = Births::new();
        assert_eq!(proven(&pair(5), &pair(5), &none), 2);
        let mut moved = pair(5);
        moved.processes.get_mut(&11).unwrap().threads[0].switches.0 = 6;
        assert_eq!(proven(&pair(5), &moved, &none), 0);
        // Another process of the same number.
        let mut other = pair(5);
        other.processes.get_mut(&10).unwrap().start = 2_000;
        assert_eq!(proven(&pair(5), &other, &none), 0);
        let mut thread = pair(5);
        let threads = &mut thread.processes.get_mut(&10).unwrap().threads;
        threads.push(Thread {
            tid: 12,
            wait: Wait::Time,
            ..threads[0].clone()
        });
        assert_eq!(proven(&pair(5), &thread, &none), 0);
    }

    #[test]
    fn an_edge_of_both_looks_is_there_once() {
        let graph = Graph::of(&pair(5), &pair(5), &Births::new());
        assert_eq!(graph.nodes[&10].edges.len(), 1);
    }

    #[test]
    fn a_write_end_seen_at_one_look_counts() {
        let mut held = pair(5);
        let mut third = held.processes[&10].clone();
        (third.pid, third.threads[0].wait) = (12, Wait::Time);
        held.processes.insert(12, third);
        assert_eq!(proven(&pair(5), &held, &Births::new()), 0);
        assert_eq!(proven(&held, &pair(5), &Births::new()), 0);
    }

    #[test]
    fn who_may_not_be_looked_at_may_hold_an_end_unless_it_is_older() {
        let mut world = pair(5);
        let mut hidden = world.processes[&10].clone();
        (hidden.pid, hidden.start, hidden.fds) = (9, 500, None);
        hidden.threads[0].wait = Wait::Time;
        world.processes.insert(9, hidden);
        world.unseen.processes.push(9);
        assert_eq!(proven(&world, &world, &Births::new()), 0);
        // Made by one of the pair, who is older.
        let born = |ticks| Births::from([(Object::Pipe(1), ticks), (Object::Pipe(2), ticks)]);
        assert_eq!(proven(&world, &world, &born(1_004)), 2);
        // Made before both of them, so by somebody else.
        assert_eq!(proven(&world, &world, &born(1_003)), 0);
        // The hidden one is younger than the pipes, and may have inherited.
        world.processes.get_mut(&9).unwrap().start = 1_001;
        assert_eq!(proven(&world, &world, &born(1_004)), 0);
        world.processes.get_mut(&9).unwrap().start = 500;
        world.unseen.hidepid = true;
        assert_eq!(proven(&world, &world, &born(1_004)), 0);
    }

    /// A loop reads the pipe that its handler of SIGINT writes to.
    #[test]
    fn a_handler_may_feed_a_pipe_to_oneself() {
        for (caught, expected) in [(0, 1), (bit(11), 1), (bit(2), 0), (bit(15), 0)] {
            let mut world = pair(5);
            world.processes.remove(&11);
            let one = world.processes.get_mut(&10).unwrap();
            one.caught = caught;
            for fd in one.fds.iter_mut().flatten() {
                fd.of = Object::Pipe(1);
            }
            assert_eq!(
                proven(&world, &world, &Births::new()),
                expected,
                "{caught:x}"
            );
        }
    }

    /// vmsplice is a write by its name, and reads from a read end.
    #[test]
    fn the_end_that_a_descriptor_is_says_which_way_it_goes() {
        let mut world = pair(5);
        world.processes.get_mut(&11).unwrap().threads[0].wait = Wait::Write(0);
        let mut third = world.processes[&10].clone();
        (third.pid, third.threads[0].wait) = (12, Wait::Time);
        world.processes.insert(12, third);
        assert_eq!(proven(&world, &world, &Births::new()), 0);
    }

    #[test]
    fn what_releases_by_itself() {
        for wait in [
            Wait::Runs,
            Wait::Time,
            Wait::Signal,
            Wait::Peer,
            Wait::Stopped,
            Wait::Other(999),
            Wait::HiddenSet { finite: false },
            Wait::Hidden(String::from("pipe_read")),
            Wait::Uninterruptible(String::new()),
            Wait::Futex { private: false },
            Wait::Set {
                read: vec![0],
                write: Vec::new(),
                finite: true,
            },
        ] {
            let mut world = pair(5);
            world.processes.get_mut(&11).unwrap().threads[0].wait = wait.clone();
            assert_eq!(proven(&world, &world, &Births::new()), 0, "{wait:?}");
        }
        for (caught, expected) in [
            (bit(14), 0),
            (bit(10), 0),
            (bit(34), 0),
            (bit(33), 2),
            (bit(15), 2),
        ] {
            let mut world = pair(5);
            world.processes.get_mut(&11).unwrap().caught = caught;
            assert_eq!(
                proven(&world, &world, &Births::new()),
                expected,
                "{caught:x}"
            );
        }
        let mut world = pair(5);
        for timers in [Some(true), None] {
            world.processes.get_mut(&11).unwrap().timers = timers;
            assert_eq!(proven(&world, &world, &Births::new()), 0, "{timers:?}");
        }
        let mut world = pair(5);
        world.processes.get_mut(&11).unwrap().fds = None;
        assert_eq!(proven(&world, &world, &Births::new()), 0);
    }
}
