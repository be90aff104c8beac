//! From a program along its waits to the one that the rest of its tree waits for.

use std::collections::BTreeSet;

use crate::graph::{Edge, Free, Graph, Why};
use crate::holders;
use crate::knot;
use crate::wait::Wait;
use crate::waiting::{WaitKind, Waiting};
use crate::words;
use crate::world::{Process, Thread, World};

/// What the process `root` waits for. `None` if it is not there.
pub(crate) fn waiting(world: &World, graph: &Graph, root: i32) -> Option<Waiting> {
    let follow = Follow {
        world,
        graph,
        tree: world.with_descendants(BTreeSet::from([root])),
    };
    follow.of(root, &mut BTreeSet::new())
}

struct Follow<'a> {
    world: &'a World,
    graph: &'a Graph,
    tree: BTreeSet<i32>,
}

impl Follow<'_> {
    fn who(&self, pid: i32) -> String {
        match self.world.processes.get(&pid) {
            Some(process) => format!("{} ({pid})", process.name),
            None => format!("({pid})"),
        }
    }

    /// What one process waits for. `seen` are those that were asked already: who waits for
    /// one of them waits in a circle.
    fn of(&self, pid: i32, seen: &mut BTreeSet<i32>) -> Option<Waiting> {
        let process = self.world.processes.get(&pid)?;
        if process.gone {
            return Some(Waiting::ended(pid, &process.name));
        }
        seen.insert(pid);
        let runs = |thread: &&Thread| thread.wait == Wait::Runs;
        if let Some(thread) = process.threads.iter().find(runs) {
            return Some(self.told(process, thread, WaitKind::Nothing));
        }
        if let Some(at_terminal) = self.at_terminal(process) {
            return Some(at_terminal);
        }
        let mut living = process.threads.iter().filter(|t| t.wait != Wait::Ended);
        let each = living
            .by_ref()
            .map(|thread| self.thread(process, thread, seen));
        // Of equals the first: the first thread is the program's own.
        each.min_by_key(|waiting| rank_among_threads(waiting.kind))
    }

    /// A wait for what a person types, by the rules of the verdict *input*.
    fn at_terminal(&self, process: &Process) -> Option<Waiting> {
        let free = &self.graph.node(process.pid)?.free;
        let mut number = None;
        for free in free {
            match free {
                Free::Input(fd) => number = number.or(Some(*fd)),
                // As the thread does that the C library has for timers: it is no work.
                Free::Signal => {}
                // Another thread works, or waits for something else.
                _ => return None,
            }
        }
        Some(self.by_terminal(process, number?, WaitKind::Input))
    }

    /// The descriptor by which a thread looks at its terminal for a time, where nothing else than
    /// that time and a person could end its wait.
    fn timed_input(&self, process: &Process, thread: &Thread) -> Option<i32> {
        let Wait::Set { read, finite, .. } = &thread.wait else {
            return None;
        };
        let free = self
            .graph
            .node(process.pid)
            .into_iter()
            .flat_map(|node| &node.free);
        let mut found = free.filter_map(|free| match free {
            Free::TimedInput(fd) if *finite && read.contains(fd) => Some(*fd),
            _ => None,
        });
        found.next()
    }

    /// A wait for what a person types, or one that may be it.
    fn by_terminal(&self, process: &Process, fd: i32, kind: WaitKind) -> Waiting {
        let who = self.who(process.pid);
        let does = match kind {
            WaitKind::Input => "waits for input",
            _ => "sleeps until its time is up, and may wait for input",
        };
        let device = words::terminal(process.terminal);
        Waiting {
            kind,
            pid: process.pid,
            name: process.name.clone(),
            fd: Some(fd),
            terminal: true,
            holders: Vec::new(),
            text: match device.starts_with('/') {
                true => format!("{who} {does} on its terminal, {device}"),
                false => format!("{who} {does} on {device}"),
            },
        }
    }

    fn thread(&self, process: &Process, thread: &Thread, seen: &mut BTreeSet<i32>) -> Waiting {
        let edges: Vec<&Edge> = knot::real_edges(self.graph, process.pid)
            .filter(|edge| edge.tid == thread.tid && edge.to != process.pid)
            .collect();
        let (inside, outside): (Vec<&Edge>, Vec<&Edge>) =
            edges.iter().partition(|edge| self.tree.contains(&edge.to));
        let alone = |kind| self.told(process, thread, kind);
        match &thread.wait {
            Wait::Child(_) => self.inside(process, thread, &inside, seen),
            Wait::Read(fd) | Wait::Write(fd) => {
                let is_read = matches!(thread.wait, Wait::Read(_));
                // A pipe to others of the tree, which they alone have, is its own affair.
                if outside.is_empty() && !inside.is_empty() {
                    return self.inside(process, thread, &inside, seen);
                }
                let kind = match (is_read, *fd) {
                    (true, 0) => WaitKind::Input,
                    (true, _) => WaitKind::Peer,
                    (false, _) => WaitKind::Output,
                };
                self.by_descriptor(process, *fd, kind, &outside)
            }
            Wait::Set { finite: true, .. } | Wait::HiddenSet { finite: true } | Wait::Time => {
                match self.timed_input(process, thread) {
                    Some(fd) => self.by_terminal(process, fd, WaitKind::Timer),
                    None => alone(WaitKind::Timer),
                }
            }
            Wait::Set { read, .. } => {
                let of_stdin = |edge: &&&Edge| matches!(edge.why, Why::Reads { fd: 0, .. });
                let stdin: Vec<&Edge> = outside.iter().filter(of_stdin).copied().collect();
                if read.contains(&0) && !stdin.is_empty() && stdin.len() == edges.len() {
                    return self.by_descriptor(process, 0, WaitKind::Input, &stdin);
                }
                match (outside.as_slice(), inside.as_slice()) {
                    ([], []) if !self.has_peers(process.pid) => alone(WaitKind::Lock),
                    ([], [_, ..]) => self.inside(process, thread, &inside, seen),
                    _ => self.told_with(process, thread, WaitKind::Peer, &edges),
                }
            }
            // As a shell's `wait` does, until it is told that a child has ended.
            Wait::Signal => {
                let node = self.graph.node(process.pid).into_iter();
                let edges = node.flat_map(|node| &node.edges);
                let children: Vec<&Edge> = edges
                    .filter(|edge| edge.why == Why::ChildSignal && edge.tid == thread.tid)
                    .collect();
                match children.is_empty() {
                    true => alone(WaitKind::Nothing),
                    false => self.inside(process, thread, &children, seen),
                }
            }
            Wait::FileLock(fd) => self.by_descriptor(process, *fd, WaitKind::Lock, &edges),
            Wait::Futex { .. } => self.told_with(process, thread, WaitKind::Lock, &edges),
            Wait::Accept(_) | Wait::Connect(_) | Wait::FifoPartner(_) => alone(WaitKind::Peer),
            Wait::HiddenSet { finite: false }
            | Wait::Uninterruptible(_)
            | Wait::Restarted
            | Wait::Other(_)
            | Wait::Hidden(_)
            | Wait::Stopped
            | Wait::Frozen
            | Wait::Traced
            | Wait::Runs
            | Wait::Ended => alone(WaitKind::Nothing),
        }
    }

    /// A wait for others of the tree: what these wait for, if that says more.
    fn inside(
        &self,
        process: &Process,
        thread: &Thread,
        edges: &[&Edge],
        seen: &mut BTreeSet<i32>,
    ) -> Waiting {
        let own = match thread.wait {
            Wait::Write(_) => WaitKind::Output,
            Wait::Child(_) | Wait::Signal => WaitKind::Child,
            _ => WaitKind::Peer,
        };
        let mut found: Option<Waiting> = None;
        for edge in edges {
            if seen.contains(&edge.to) {
                continue;
            }
            let Some(one) = self.of(edge.to, seen) else {
                continue;
            };
            let best = found.as_ref().map(rank);
            if best.is_none_or(|best| rank(&one) < best) {
                found = Some(one);
            }
        }
        match found {
            Some(waiting) if waiting.kind != WaitKind::Nothing => waiting,
            found => {
                let mut waiting = self.told_with(process, thread, own, edges);
                if let Some(found) = found {
                    waiting.text += &format!("; {}", found.text);
                }
                waiting
            }
        }
    }

    /// True if a wait of this process ends by what comes over a network, or from a device.
    fn has_peers(&self, pid: i32) -> bool {
        let free = self.graph.node(pid).into_iter().flat_map(|node| &node.free);
        let mut of_others = free.filter(|free| matches!(free, Free::Peer | Free::Device));
        of_others.next().is_some()
    }

    /// A wait by a descriptor, with those who have its other end.
    fn by_descriptor(
        &self,
        process: &Process,
        fd: i32,
        kind: WaitKind,
        edges: &[&Edge],
    ) -> Waiting {
        let holders = holders::holders(self.world, edges);
        let names = holders::named(&holders);
        let on = match process.fd(fd) {
            Some(found) => format!("{}, {}", words::fd(fd), words::object(found.of)),
            None => words::fd(fd),
        };
        let (does, held) = match kind {
            WaitKind::Input => ("waits for input on", "held by"),
            WaitKind::Output => ("waits for room in", "to be read by"),
            WaitKind::Lock => ("waits for a lock of", "which has"),
            _ => ("waits to read from", "held by"),
        };
        let mut text = format!("{} {does} {on}", self.who(process.pid));
        if !names.is_empty() {
            text += &format!(", {held} {names}");
        }
        Waiting {
            kind,
            pid: process.pid,
            name: process.name.clone(),
            fd: Some(fd),
            terminal: process.fd(fd).is_some_and(|fd| process.is_own_terminal(fd)),
            holders,
            text,
        }
    }

    /// A wait in the words that the verdicts have for it, with those who could end it.
    fn told_with(
        &self,
        process: &Process,
        thread: &Thread,
        kind: WaitKind,
        edges: &[&Edge],
    ) -> Waiting {
        let mut waiting = self.told(process, thread, kind);
        waiting.text += &holders::told(self.world, edges);
        waiting.holders = holders::holders(self.world, edges);
        waiting
    }

    /// A wait in the words that the verdicts have for it.
    fn told(&self, process: &Process, thread: &Thread, kind: WaitKind) -> Waiting {
        let does = words::wait(process, &thread.wait);
        Waiting {
            kind,
            pid: process.pid,
            name: process.name.clone(),
            fd: None,
            terminal: false,
            holders: Vec::new(),
            text: format!("{} {does}", self.who(process.pid)),
        }
    }
}

/// The order of what the threads of one process wait for: a thread that waits for input is the
/// reason only where no other waits for an answer, or for a child.
fn rank_among_threads(kind: WaitKind) -> u8 {
    match kind {
        WaitKind::Peer => 0,
        WaitKind::Output => 1,
        WaitKind::Child => 2,
        WaitKind::Input => 3,
        WaitKind::Timer => 4,
        WaitKind::Lock => 5,
        WaitKind::Nothing => 6,
    }
}

/// The order of what several processes wait for: what says most of why a program does not go
/// on comes first. A lock that somebody has says more than that its holder sleeps; of one that
/// nobody is known to have it is a worker who has nothing to do.
fn rank(waiting: &Waiting) -> u8 {
    match waiting.kind {
        WaitKind::Input => 0,
        WaitKind::Output => 1,
        WaitKind::Lock if !waiting.holders.is_empty() => 2,
        WaitKind::Peer => 3,
        WaitKind::Timer => 4,
        WaitKind::Child => 5,
        WaitKind::Lock => 6,
        WaitKind::Nothing => 7,
    }
}
