//! Circles of which nobody can be released: which, what they are called, what is said.

use std::collections::BTreeSet;

use super::seen::Judge;
use crate::finding::{Finding, Link};
use crate::graph::{Edge, Why};
use crate::holders;
use crate::knot::{self, Doubts};
use crate::pattern::Pattern;
use crate::scan;
use crate::verdict::Verdict;
use crate::words;
use crate::world::{Object, Process};

/// Generations of processes that are looked through for a make.
const DEEPEST: usize = 1000;

impl Judge<'_> {
    /// Circles of which nobody can be released, and that have to do with who was asked about.
    pub(super) fn deadlocks(&self) -> Vec<Finding> {
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
                fix: self.fix(pattern, &circle) + &self.small_pipes(&circle).unwrap_or_default(),
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

    /// What was not seen of those on whom a group's release depends.
    pub(super) fn doubts(&self, group: &BTreeSet<i32>) -> Vec<String> {
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
            texts.extend(self.may_unlock(pid, &possible));
        }
        texts
    }

    /// The doubt that others, who are not `stuck`, could unlock what a process waits for.
    fn may_unlock(&self, pid: i32, stuck: &BTreeSet<i32>) -> Option<String> {
        let edges = &self.graph.node(pid)?.edges;
        let goes_on = |edge: &&Edge| edge.why == Why::MayUnlock && !stuck.contains(&edge.to);
        let edges: Vec<&Edge> = edges.iter().filter(goes_on).collect();
        let others = holders::holders(self.second, &edges);
        (!others.is_empty()).then(|| words::may_unlock(&self.who(pid), &holders::named(&others)))
    }

    /// The name of a circle.
    pub(super) fn pattern(&self, circle: &[Edge]) -> Pattern {
        let reads = |edge: &Edge| matches!(edge.why, Why::Reads { .. });
        let writes = |edge: &Edge| matches!(edge.why, Why::Writes { .. });
        let ends = |edge: &Edge| edge.why == Why::Ends;
        if circle.iter().all(|edge| edge.why == Why::Unlocks) {
            return Pattern::FileLocks;
        }
        if circle.iter().all(|edge| edge.why == Why::Mutex) {
            return Pattern::Mutexes;
        }
        if circle
            .iter()
            .any(|edge| matches!(edge.why, Why::Abandoned { .. }))
        {
            return Pattern::DeadOwner;
        }
        if circle.iter().any(|edge| self.is_token(edge)) {
            return Pattern::Jobserver;
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
    pub(super) fn is_leak(&self, edge: &Edge) -> bool {
        let Why::Reads { of, end, set, .. } = edge.why else {
            return false;
        };
        let is_pipe = matches!(of, Object::Pipe(_) | Object::Fifo { .. });
        let parent = self.process(edge.from).map(|process| process.ppid);
        let inherited = end > 2 && parent != Some(edge.to);
        is_pipe && !set && (edge.from == edge.to || inherited)
    }

    /// True if `edge` reads from the jobserver of a make, of which one side at least was started
    /// by it: by an ancestor that has it open as well.
    pub(super) fn is_token(&self, edge: &Edge) -> bool {
        let Why::Reads { fd, end, .. } = edge.why else {
            return false;
        };
        [(edge.from, fd), (edge.to, end)]
            .into_iter()
            .any(|(pid, number)| {
                let process = self.process(pid);
                let fd = process.and_then(|process| process.fd(number));
                process.zip(fd).is_some_and(|(process, fd)| {
                    self.is_of_ancestor(process, fd.of) && scan::is_jobserver(process, fd)
                })
            })
    }

    /// True if somebody from whom `process` descends has `of` open.
    fn is_of_ancestor(&self, process: &Process, of: Object) -> bool {
        let parent = |one: &&Process| self.process(one.ppid);
        let ancestors = std::iter::successors(parent(&process), parent);
        // Numbers that were given anew between the looks could make a circle.
        ancestors.take(DEEPEST).any(|one| {
            let mut fds = one.fds.iter().flatten();
            fds.any(|fd| fd.of == of)
        })
    }

    /// True if others have the other end of what `edge` reads, too.
    pub(super) fn others_write(&self, edge: &Edge) -> bool {
        let Why::Reads { of: wanted, .. } = edge.why else {
            return false;
        };
        knot::real_edges(self.graph, edge.from).any(|other| {
            other.to != edge.from && matches!(other.why, Why::Reads { of, .. } if of == wanted)
        })
    }

    pub(super) fn deadlock_sentence(&self, pattern: Pattern, circle: &[Edge]) -> String {
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
            (Pattern::Jobserver, _) => {
                let taker = circle.iter().find(|edge| self.is_token(edge)).unwrap_or(a);
                format!(
                    "{} waits for a token of make's jobserver, and none of those who could give \
                     one back goes on.",
                    self.who(taker.from)
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
            (Pattern::Mutexes, _) if circle.len() == 1 => {
                format!("{who_a} waits for a mutex in shared memory that it holds itself.")
            }
            (Pattern::Mutexes, _) if circle.len() == 2 => format!(
                "{who_a} and {who_b} each wait for a mutex in shared memory that the other holds."
            ),
            (Pattern::DeadOwner, _) => {
                let owner = circle.iter().find_map(|edge| match edge.why {
                    Why::Abandoned { owner, ended } => Some((owner, ended)),
                    _ => None,
                });
                let (owner, ended) = owner.unwrap_or((a.tid, false));
                let fate = match ended {
                    true => "has ended",
                    false => "is gone, or has that memory no more",
                };
                format!(
                    "{who_a} waits for a mutex in shared memory that its holder does not give \
                     back: thread {owner}, which held it, {fate}."
                )
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
    pub(super) fn fix(&self, pattern: Pattern, circle: &[Edge]) -> String {
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
}
