//! From two looks and their graph to verdicts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::diagnosis::{Counts, Diagnosis, ProcessView, WaitView};
use crate::finding::{Finding, Link};
use crate::graph::{Edge, Free, Graph, Why};
use crate::holders;
use crate::knot::{self, Doubts};
use crate::pattern::Pattern;
use crate::scan;
use crate::verdict::Verdict;
use crate::wait::Wait;
use crate::words;
use crate::world::{Object, Process, Thread, World};

/// SIGTTIN and SIGTTOU, by which the terminal stops who is in the background.
const TERMINAL_STOPS: [i32; 2] = [21, 22];

/// True if there is more to tell of these processes than that each goes on, or waits for
/// somebody who does, or might, if nobody moved any more.
pub(crate) fn has_findings(world: &World, graph: &Graph, targets: &BTreeSet<i32>) -> bool {
    let judge = Judge {
        first: world,
        second: world,
        graph,
        targets,
        between: Duration::ZERO,
    };
    !judge.findings().is_empty()
}

/// What follows for these processes.
pub(crate) fn diagnose(
    first: &World,
    second: &World,
    graph: &Graph,
    targets: &BTreeSet<i32>,
    between: Duration,
) -> Diagnosis {
    let judge = Judge {
        first,
        second,
        graph,
        targets,
        between,
    };
    judge.diagnosis(judge.findings())
}

struct Judge<'a> {
    first: &'a World,
    second: &'a World,
    graph: &'a Graph,
    targets: &'a BTreeSet<i32>,
    between: Duration,
}

impl Judge<'_> {
    /// What keeps processes from going on, the gravest first.
    fn findings(&self) -> Vec<Finding> {
        let mut findings = self.deadlocks();
        let in_deadlock: BTreeSet<i32> = findings
            .iter()
            .flat_map(|finding| finding.processes.iter().chain(&finding.behind))
            .copied()
            .collect();
        findings.extend(self.roots(&in_deadlock));
        findings.extend(self.slow(&findings));
        findings.sort_by_key(|finding| (finding.verdict, finding.processes.clone()));
        findings
    }

    fn process(&self, pid: i32) -> Option<&Process> {
        let second = self.second.processes.get(&pid);
        second.or_else(|| self.first.processes.get(&pid))
    }

    /// Name and number, as every text has them.
    fn who(&self, pid: i32) -> String {
        match self.process(pid) {
            Some(process) => format!("{} ({pid})", process.name),
            None => format!("({pid})"),
        }
    }

    fn link(&self, edge: &Edge) -> Link {
        words::link(edge, &self.who(edge.to))
    }

    /// Threads that sleep in the same call at both looks, and have slept in between.
    fn sleepers(&self, pid: i32) -> impl Iterator<Item = &Thread> {
        let before = self.first.processes.get(&pid);
        let after = self.second.processes.get(&pid);
        let pair = before.zip(after).filter(|(a, b)| a.start == b.start);
        pair.into_iter().flat_map(|(before, after)| {
            let slept = |thread: &&Thread| {
                before.threads.iter().any(|one| {
                    (one.tid, one.switches, &one.call, &one.wait)
                        == (thread.tid, thread.switches, &thread.call, &thread.wait)
                })
            };
            after.threads.iter().filter(slept)
        })
    }

    /// Circles of which nobody can be released, and that have to do with who was asked about.
    fn deadlocks(&self) -> Vec<Finding> {
        let possible = knot::stuck(self.graph, Doubts::Disregarded);
        let proven = knot::stuck(self.graph, Doubts::Release);
        let mut findings = Vec::new();
        for group in knot::cycles(self.graph, &possible) {
            let behind = self.behind(&possible, &group);
            let mut concerned = group.iter().chain(&behind);
            if !concerned.any(|pid| self.targets.contains(pid)) {
                continue;
            }
            let circle = knot::shortest_cycle(self.graph, &group);
            let members: BTreeSet<i32> = circle.iter().map(|edge| edge.from).collect();
            let certain = group.iter().all(|pid| proven.contains(pid));
            let pattern = self.pattern(&circle);
            let links: Vec<Link> = circle.iter().map(|edge| self.link(edge)).collect();
            let rest = group.difference(&members).copied();
            findings.push(Finding {
                verdict: match certain {
                    true => Verdict::Proven,
                    false => Verdict::Possible,
                },
                pattern,
                sentence: self.deadlock_sentence(pattern, &circle),
                fix: self.fix(pattern, &circle),
                processes: members.iter().copied().collect(),
                links,
                circle: true,
                behind: rest.chain(behind.iter().copied()).collect(),
                doubts: match certain {
                    true => Vec::new(),
                    false => self.doubts(&group),
                },
            });
        }
        findings
    }

    /// Members of `stuck` outside of `group` that wait for it.
    fn behind(&self, stuck: &BTreeSet<i32>, group: &BTreeSet<i32>) -> BTreeSet<i32> {
        let mut found: BTreeSet<i32> = BTreeSet::new();
        loop {
            let waits = |pid: &&i32| {
                let mut edges = knot::real_edges(self.graph, **pid);
                edges.any(|edge| group.contains(&edge.to) || found.contains(&edge.to))
            };
            let more = stuck.difference(group).filter(|pid| !found.contains(pid));
            let more: Vec<i32> = more.filter(waits).copied().collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }

    /// What was not seen of those on whom a group's release depends.
    fn doubts(&self, group: &BTreeSet<i32>) -> Vec<String> {
        let possible = knot::stuck(self.graph, Doubts::Disregarded);
        let mut reached = group.clone();
        let mut todo: Vec<i32> = group.iter().copied().collect();
        while let Some(pid) = todo.pop() {
            for edge in self
                .graph
                .node(pid)
                .into_iter()
                .flat_map(|node| &node.edges)
            {
                if possible.contains(&edge.to) && reached.insert(edge.to) {
                    todo.push(edge.to);
                }
            }
        }
        let mut texts = Vec::new();
        for pid in reached {
            for &doubt in self
                .graph
                .node(pid)
                .into_iter()
                .flat_map(|node| &node.doubts)
            {
                let text = words::doubt(doubt, &self.who(pid));
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
        texts
    }

    /// The name of a circle.
    fn pattern(&self, circle: &[Edge]) -> Pattern {
        let reads = |edge: &Edge| matches!(edge.why, Why::Reads { .. });
        let writes = |edge: &Edge| matches!(edge.why, Why::Writes { .. });
        let ends = |edge: &Edge| edge.why == Why::Ends;
        if circle.iter().all(|edge| edge.why == Why::Unlocks) {
            return Pattern::FileLocks;
        }
        // A shell that waits for its program is in nobody's way.
        let rest: Vec<&Edge> = circle.iter().filter(|edge| !ends(edge)).collect();
        let has_ends = rest.len() < circle.len();
        let is_unread = |reader: &Edge, writer: &Edge| {
            reads(reader) && writes(writer) && writer.to == reader.from
        };
        // Before a write end that was left open: of a shell it is mostly the stdout that it
        // has put aside for the time of a command.
        if let [a, b] = rest[..]
            && (is_unread(a, b) || is_unread(b, a))
        {
            return Pattern::UnreadOutput;
        }
        if circle.iter().any(|edge| self.is_leak(edge)) {
            return match circle {
                [_] => Pattern::OwnWriteEnd,
                _ => Pattern::LeakedWriteEnd,
            };
        }
        match rest[..] {
            [a, b] if !has_ends && writes(a) && writes(b) => Pattern::BothWrite,
            [a, b] if !has_ends && reads(a) && reads(b) => Pattern::BothRead,
            [one] if has_ends && writes(one) => Pattern::WaitBeforeRead,
            [one] if has_ends && reads(one) => Pattern::WaitBeforeClose,
            _ => Pattern::Circle,
        }
    }

    /// True if `edge` reads from a pipe whose writer does not use it: a descriptor beside the
    /// standard ones, of the reader itself or of somebody who is not the reader's parent.
    fn is_leak(&self, edge: &Edge) -> bool {
        let Why::Reads { of, end, set, .. } = edge.why else {
            return false;
        };
        let is_pipe = matches!(of, Object::Pipe(_) | Object::Fifo { .. });
        let parent = self.process(edge.from).map(|process| process.ppid);
        let inherited = end > 2 && parent != Some(edge.to);
        is_pipe && !set && (edge.from == edge.to || inherited)
    }

    /// True if others have the other end of what `edge` reads, too.
    fn others_write(&self, edge: &Edge) -> bool {
        let Why::Reads { of: wanted, .. } = edge.why else {
            return false;
        };
        knot::real_edges(self.graph, edge.from).any(|other| {
            other.to != edge.from && matches!(other.why, Why::Reads { of, .. } if of == wanted)
        })
    }

    fn deadlock_sentence(&self, pattern: Pattern, circle: &[Edge]) -> String {
        let (Some(a), Some(last)) = (circle.first(), circle.last()) else {
            return String::new();
        };
        let (who_a, who_b) = (self.who(a.from), self.who(last.from));
        let writer = circle
            .iter()
            .find(|edge| matches!(edge.why, Why::Writes { .. }));
        let leak = circle.iter().find(|edge| self.is_leak(edge)).unwrap_or(a);
        match (pattern, writer) {
            (Pattern::UnreadOutput | Pattern::WaitBeforeRead, Some(edge)) => {
                // What the one who should read does instead, and with whom.
                let instead = circle
                    .iter()
                    .find(|other| other.from == edge.to)
                    .unwrap_or(a);
                let whom = match instead.to == edge.from {
                    true => None,
                    false => Some(self.who(instead.to)),
                };
                let does = match (pattern, whom) {
                    (Pattern::UnreadOutput, None) => "reads something else from it".to_owned(),
                    (Pattern::UnreadOutput, Some(whom)) => {
                        format!("reads something else, of {whom}")
                    }
                    (_, None) => "waits for its end".to_owned(),
                    (_, Some(whom)) => format!("waits for the end of {whom}"),
                };
                let Why::Writes { fd, .. } = edge.why else {
                    return String::new();
                };
                format!(
                    "{} cannot go on: {} of it is full, and {}, who should read it, {does}.",
                    self.who(edge.from),
                    words::fd(fd),
                    self.who(edge.to),
                )
            }
            (Pattern::WaitBeforeClose, _) => {
                let reader = circle
                    .iter()
                    .find(|edge| matches!(edge.why, Why::Reads { .. }))
                    .unwrap_or(a);
                let next = circle.iter().find(|edge| edge.from == reader.to);
                let whose = match next.map_or(reader.from, |edge| edge.to) {
                    pid if pid == reader.from => "its end".to_owned(),
                    pid => format!("the end of {}", self.who(pid)),
                };
                format!(
                    "{} reads until {} closes its end, which waits for {whose}.",
                    self.who(reader.from),
                    self.who(reader.to),
                )
            }
            (Pattern::BothWrite, _) => {
                format!("{who_a} and {who_b} write to each other, and neither reads.")
            }
            (Pattern::BothRead, _) => {
                format!("{who_a} and {who_b} each wait for a word of the other.")
            }
            (Pattern::OwnWriteEnd, _) if self.others_write(a) => {
                format!("{who_a} waits for the end of a pipe that it has open for writing itself.")
            }
            (Pattern::OwnWriteEnd, _) => format!(
                "{who_a} waits for the end of a pipe that nobody but itself has open for \
                 writing."
            ),
            (Pattern::LeakedWriteEnd, _) => format!(
                "{} sees no end of its input: {} has inherited the write end and has no \
                 need of it.",
                self.who(leak.from),
                self.who(leak.to),
            ),
            // A lock of an open file (flock) is that of whoever has inherited it, and another
            // open of the file waits for it.
            (Pattern::FileLocks, _) if circle.len() == 1 => format!(
                "{who_a} waits for a lock of a file that it holds itself, by a descriptor of an \
                 earlier open."
            ),
            (Pattern::FileLocks, _) => {
                format!("{who_a} and {who_b} each wait for a lock of a file that the other holds.")
            }
            _ => {
                let names: Vec<String> = circle.iter().map(|edge| self.who(edge.from)).collect();
                match names.as_slice() {
                    [one] => format!("{one} waits for itself."),
                    names => format!(
                        "They wait for each other in a circle: {}.",
                        names.join(", ")
                    ),
                }
            }
        }
    }

    /// What to do about a circle, with the processes that it concerns.
    fn fix(&self, pattern: Pattern, circle: &[Edge]) -> String {
        let leak = circle.iter().find(|edge| self.is_leak(edge));
        match (pattern, leak.map(|edge| (edge, edge.why))) {
            (
                Pattern::OwnWriteEnd | Pattern::LeakedWriteEnd,
                Some((edge, Why::Reads { end, .. })),
            ) => format!(
                "{} In {} it is {}.",
                pattern.fix(),
                self.who(edge.to),
                words::fd(end)
            ),
            (Pattern::FileLocks, _) if circle.len() == 1 => String::from(
                "Take the lock once: close the descriptor that has it before a program is started \
                 that takes it again (9>&- in a shell), or have that program use it (flock 9).",
            ),
            _ => pattern.fix().to_owned(),
        }
    }

    /// Processes that do not go on for a reason of their own: a person, a stop, a FIFO.
    fn roots(&self, in_deadlock: &BTreeSet<i32>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for &pid in self.second.processes.keys() {
            if in_deadlock.contains(&pid) {
                continue;
            }
            let Some((verdict, pattern, sentence)) = self.root(pid) else {
                continue;
            };
            let behind = self.behind_root(pid);
            if !self.targets.contains(&pid) && self.targets.is_disjoint(&behind) {
                continue;
            }
            findings.push(Finding {
                verdict,
                pattern,
                sentence,
                fix: pattern.fix().to_owned(),
                processes: vec![pid],
                links: self.way_to(pid, &behind),
                circle: false,
                behind: behind.into_iter().collect(),
                doubts: Vec::new(),
            });
        }
        findings
    }

    fn root(&self, pid: i32) -> Option<(Verdict, Pattern, String)> {
        let process = self.process(pid)?;
        let who = self.who(pid);
        if process.is_stopped() {
            return Some(self.stopped(process, &who));
        }
        if let Some((number, device)) = self.input(process) {
            let sentence = format!(
                "{who} waits for what is typed at {} ({}).",
                words::terminal(device),
                words::fd(number)
            );
            return Some((Verdict::Input, Pattern::Terminal, sentence));
        }
        for thread in self.sleepers(pid) {
            match &thread.wait {
                Wait::FifoPartner(path) => {
                    let path = if path.is_empty() { "a FIFO" } else { path };
                    let sentence = format!("{who} opens {path}, and nobody opens its other end.");
                    return Some((Verdict::Possible, Pattern::FifoPartner, sentence));
                }
                Wait::Uninterruptible(place) => {
                    let sentence = format!(
                        "{who} is in a call from which the system has not come back for {} ms \
                         ({place}).",
                        self.between.as_millis()
                    );
                    return Some((Verdict::Possible, Pattern::Uninterruptible, sentence));
                }
                _ => {}
            }
        }
        self.held_open(process)
    }

    fn stopped(&self, process: &Process, who: &str) -> (Verdict, Pattern, String) {
        let by_terminal = TERMINAL_STOPS.contains(&process.stop_signal);
        let device = words::terminal(process.terminal);
        let sentence = match process.stop_signal {
            21 => format!("{who} was stopped since it reads from {device} in the background."),
            22 => format!("{who} was stopped since it writes to {device} in the background."),
            0 => format!("{who} is stopped."),
            libc::SIGSTOP => format!("{who} is stopped by SIGSTOP."),
            libc::SIGTSTP => format!("{who} is stopped by SIGTSTP, as Ctrl-Z sends it."),
            signal => format!("{who} is stopped by signal {signal}."),
        };
        let pattern = match by_terminal {
            true => Pattern::Background,
            false => Pattern::Stopped,
        };
        (Verdict::Stopped, pattern, sentence)
    }

    /// The descriptor by which a thread has waited for input all the while, and its terminal.
    fn input(&self, process: &Process) -> Option<(i32, u64)> {
        let wanted = |free: &Free| match free {
            Free::Input(number) => Some(*number),
            _ => None,
        };
        let node = self.graph.node(process.pid)?;
        // Another thread works, or waits for something else.
        if !node.free.iter().all(|free| wanted(free).is_some()) {
            return None;
        }
        let mut fds = node.free.iter().filter_map(wanted);
        let number = fds.find(|number| {
            self.sleepers(process.pid).any(|thread| match &thread.wait {
                Wait::Read(fd) => fd == number,
                Wait::Set { read, .. } => read.contains(number),
                _ => false,
            })
        })?;
        Some((number, process.terminal))
    }

    /// A reader whose child has ended, while what the child has left behind holds its output.
    fn held_open(&self, process: &Process) -> Option<(Verdict, Pattern, String)> {
        let sleeping: BTreeSet<i32> = self.sleepers(process.pid).map(|t| t.tid).collect();
        let reads: Vec<&Edge> = knot::real_edges(self.graph, process.pid)
            .filter(|edge| {
                matches!(
                    edge.why,
                    Why::Reads {
                        of: Object::Pipe(_),
                        ..
                    }
                )
            })
            .filter(|edge| sleeping.contains(&edge.tid))
            .collect();
        if reads.is_empty() {
            return None;
        }
        let children = self.second.processes.values();
        let dead: Vec<&Process> = children
            .filter(|child| child.ppid == process.pid && child.gone)
            .collect();
        if dead.is_empty() {
            return None;
        }
        // Each writer has to be one that the dead child may have left: younger, in its
        // group or session, and nobody's who still lives.
        let mut left = Vec::new();
        for edge in &reads {
            let holder = self.process(edge.to)?;
            let parent = dead.iter().find(|child| {
                holder.start >= child.start
                    && holder.pid != process.pid
                    && holder.ppid != process.pid
                    && holder.pgrp == child.pgrp
            })?;
            left.push((holder, *parent));
        }
        let (holder, parent) = left.first()?;
        Some((
            Verdict::Possible,
            Pattern::HeldOpen,
            format!(
                "{} has ended, and {} waits for the end of its output, which {} holds open.",
                self.who(parent.pid),
                self.who(process.pid),
                self.who(holder.pid),
            ),
        ))
    }

    /// Those who wait for `root` and for nobody who goes on: the stuck ones if it never did.
    fn behind_root(&self, root: i32) -> BTreeSet<i32> {
        let without = Graph {
            nodes: self
                .graph
                .nodes
                .iter()
                .map(|(&pid, node)| (pid, node.clone_without_freedom(pid == root)))
                .collect(),
        };
        let stuck = knot::stuck(&without, Doubts::Disregarded);
        let group = BTreeSet::from([root]);
        let mut behind = self.behind(&stuck, &group);
        behind.remove(&root);
        behind
    }

    /// A longest of the shortest ways to `root` from those behind it, of who was asked about
    /// if there is any.
    fn way_to(&self, root: i32, behind: &BTreeSet<i32>) -> Vec<Link> {
        let mut next: BTreeMap<i32, &Edge> = BTreeMap::new();
        let mut order = Vec::new();
        let mut todo = VecDeque::from([root]);
        while let Some(to) = todo.pop_front() {
            for &pid in behind {
                let edge = knot::real_edges(self.graph, pid).find(|edge| edge.to == to);
                if let Some(edge) = edge
                    && pid != root
                    && !next.contains_key(&pid)
                {
                    next.insert(pid, edge);
                    order.push(pid);
                    todo.push_back(pid);
                }
            }
        }
        let asked = order.iter().rev().find(|pid| self.targets.contains(pid));
        let mut links = Vec::new();
        let mut at = asked.copied();
        while let Some(edge) = at.and_then(|pid| next.get(&pid)) {
            links.push(self.link(edge));
            at = (edge.to != root).then_some(edge.to);
        }
        links
    }

    /// Writers that wait for a reader who goes on, but does not read.
    fn slow(&self, found: &[Finding]) -> Vec<Finding> {
        let known: BTreeSet<i32> = found
            .iter()
            .flat_map(|finding| finding.processes.iter().chain(&finding.behind))
            .copied()
            .collect();
        let mut findings = Vec::new();
        for &pid in self.targets.difference(&known) {
            let Some(edge) = self.throttled(pid) else {
                continue;
            };
            // Its reader is held up itself, and told of there.
            if known.contains(&edge.to) || self.throttled(edge.to).is_some() {
                continue;
            }
            let rate = self.rate(pid);
            let runs = [self.first, self.second].into_iter().any(|world| {
                let reader = world.processes.get(&edge.to);
                reader.is_some_and(|reader| reader.threads.iter().any(|t| t.wait == Wait::Runs))
            });
            // A reader that works as fast as it can is no fault.
            if runs && rate != Some(0) {
                continue;
            }
            let mut rates = String::new();
            if let Some(rate) = rate {
                rates = format!(
                    " In {} ms it could write {rate} bytes.",
                    self.between.as_millis()
                );
            }
            let behind: BTreeSet<i32> = self.behind_root(pid);
            findings.push(Finding {
                verdict: Verdict::Slow,
                pattern: Pattern::SlowReader,
                sentence: format!(
                    "{} writes and {} does not read it, so that the pipe is full.{rates}",
                    self.who(pid),
                    self.who(edge.to)
                ),
                fix: Pattern::SlowReader.fix().to_owned(),
                processes: BTreeSet::from([pid, edge.to]).into_iter().collect(),
                links: vec![self.link(&edge)],
                circle: false,
                behind: behind.into_iter().collect(),
                doubts: Vec::new(),
            });
        }
        findings
    }

    /// The wait for room of a process that waits for room in one pipe at both looks.
    fn throttled(&self, pid: i32) -> Option<Edge> {
        let fd_of = |world: &World| {
            let threads = &world.processes.get(&pid)?.threads;
            threads.iter().find_map(|thread| match thread.wait {
                Wait::Write(fd) => Some(fd),
                _ => None,
            })
        };
        let before = fd_of(self.first)?;
        if fd_of(self.second)? != before {
            return None;
        }
        let edge = knot::real_edges(self.graph, pid)
            .find(|edge| matches!(edge.why, Why::Writes { fd, set: false, .. } if fd == before));
        edge.cloned()
    }

    /// Bytes that a process has written between the looks.
    fn rate(&self, pid: i32) -> Option<u64> {
        let before = self.first.processes.get(&pid)?.written?;
        let after = self.second.processes.get(&pid)?.written?;
        after.checked_sub(before)
    }

    fn diagnosis(&self, findings: Vec<Finding>) -> Diagnosis {
        let mut shown = self.targets.clone();
        for finding in &findings {
            shown.extend(finding.processes.iter().chain(&finding.behind));
            for link in &finding.links {
                shown.extend([link.from, link.to]);
            }
        }
        let views = shown.iter().filter_map(|&pid| self.view(pid, &findings));
        let processes: Vec<ProcessView> = views.collect();
        let asked = processes
            .iter()
            .filter(|view| self.targets.contains(&view.pid));
        let verdict = asked.map(|view| view.verdict).min();
        let verdict = verdict.unwrap_or(Verdict::Healthy);
        let all = self.second.processes.values();
        let fds = || {
            self.second
                .processes
                .values()
                .flat_map(|p| p.fds.iter().flatten())
        };
        let pipes: BTreeSet<Object> = fds()
            .map(|fd| fd.of)
            .filter(|of| matches!(of, Object::Pipe(_) | Object::Fifo { .. }))
            .collect();
        Diagnosis {
            version: 1,
            verdict,
            sentence: self.sentence(verdict, &findings, &processes),
            findings,
            waiting: None,
            counts: Counts {
                processes: self.second.processes.len(),
                threads: all.map(|process| process.thread_count).sum(),
                descriptors: fds().count(),
                pipes: pipes.len(),
                asked: self.targets.len(),
            },
            processes,
            between_ms: self.between.as_millis().try_into().unwrap_or(u64::MAX),
            unseen: words::unseen(self.second),
        }
    }

    fn sentence(
        &self,
        verdict: Verdict,
        findings: &[Finding],
        processes: &[ProcessView],
    ) -> String {
        if let Some(gravest) = findings.first() {
            let what = match gravest.verdict {
                Verdict::Proven => "Deadlock, proven: ",
                Verdict::Possible if gravest.circle => "Deadlock, possibly: ",
                Verdict::Possible => "It may hang: ",
                Verdict::Stopped => "Stopped: ",
                Verdict::Slow => "Slow: ",
                Verdict::Input => "Waits for input: ",
                Verdict::Busy | Verdict::Healthy => "",
            };
            return format!("{what}{}", gravest.sentence);
        }
        let hidden: Vec<&ProcessView> = processes
            .iter()
            .filter(|view| view.verdict == Verdict::Possible)
            .collect();
        if let Some(first) = hidden.first() {
            let who = self.who(first.pid);
            return match hidden.len() {
                1 => format!("It may hang: {who} cannot be looked at. As root it can."),
                count => format!(
                    "They may hang: {count} processes, such as {who}, cannot be looked at. As \
                     root they can."
                ),
            };
        }
        let [only] = processes else {
            return match verdict {
                Verdict::Busy => String::from("Nothing hangs: some run, others wait for them."),
                _ => String::from("Nothing hangs, as far as can be seen."),
            };
        };
        let who = self.who(only.pid);
        match only.waits.as_slice() {
            [] => format!("{who} has ended."),
            [wait] => format!("Nothing hangs: {who} {}.", wait.text),
            _ => format!("Nothing hangs: {who}, as far as can be seen."),
        }
    }

    fn view(&self, pid: i32, findings: &[Finding]) -> Option<ProcessView> {
        let process = self.process(pid)?;
        let mut about = findings
            .iter()
            .filter(|finding| finding.processes.contains(&pid) || finding.behind.contains(&pid));
        let runs = process.threads.iter().any(|t| t.wait == Wait::Runs);
        let verdict = match about.next() {
            Some(finding) => finding.verdict,
            None if runs => Verdict::Busy,
            None if process.is_hidden() && self.targets.contains(&pid) => Verdict::Possible,
            None => Verdict::Healthy,
        };
        let slept: BTreeSet<i32> = self.sleepers(pid).map(|thread| thread.tid).collect();
        let waits = process.threads.iter().filter(|t| t.wait != Wait::Ended);
        Some(ProcessView {
            pid,
            ppid: process.ppid,
            name: process.name.clone(),
            command: scan::command_line(pid),
            verdict,
            waits: waits
                .map(|thread| self.wait_view(process, thread, slept.contains(&thread.tid)))
                .collect(),
        })
    }

    fn wait_view(&self, process: &Process, thread: &Thread, slept: bool) -> WaitView {
        let its_own = |edge: &Edge| holders::is_in_set(edge.why) && edge.to == edge.from;
        let edges: Vec<&Edge> = knot::real_edges(self.graph, process.pid)
            .filter(|edge| edge.tid == thread.tid && !its_own(edge))
            .collect();
        WaitView {
            thread: thread.tid,
            text: words::wait(process, &thread.wait) + &holders::told(self.second, &edges),
            holders: holders::holders(self.second, &edges),
            slept,
        }
    }
}
