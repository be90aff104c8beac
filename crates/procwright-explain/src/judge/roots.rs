//! Processes that do not go on for a reason of their own: a person, a stop, a FIFO.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::seen::Judge;
use crate::finding::{Finding, Link};
use crate::graph::{Edge, Free, Why};
use crate::knot;
use crate::pattern::Pattern;
use crate::verdict::Verdict;
use crate::wait::Wait;
use crate::words;
use crate::world::{Object, Process};

/// SIGTTIN and SIGTTOU, by which the terminal stops who is in the background.
const TERMINAL_STOPS: [i32; 2] = [21, 22];

impl Judge<'_> {
    /// Processes that do not go on for a reason of their own: a person, a stop, a FIFO.
    pub(super) fn roots(&self, in_deadlock: &BTreeSet<i32>) -> Vec<Finding> {
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

    pub(super) fn root(&self, pid: i32) -> Option<(Verdict, Pattern, String)> {
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

    pub(super) fn stopped(&self, process: &Process, who: &str) -> (Verdict, Pattern, String) {
        if let Some(cgroup) = &process.frozen {
            let sentence = match cgroup.as_str() {
                "" => format!("{who} is frozen, by the freezer of its cgroup."),
                cgroup => format!("{who} is frozen, by the freezer of the cgroup {cgroup}."),
            };
            return (Verdict::Stopped, Pattern::Frozen, sentence);
        }
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
    pub(super) fn input(&self, process: &Process) -> Option<(i32, u64)> {
        let wanted = |free: &Free| match free {
            Free::Input(number) => Some(*number),
            _ => None,
        };
        let node = self.graph.node(process.pid)?;
        // Another thread works, or waits for something else. One that waits for a signal, as that
        // of the C library for timers does, is no work.
        let idle = |free: &Free| matches!(free, Free::Input(_) | Free::Signal);
        if !node.free.iter().all(idle) {
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
    pub(super) fn held_open(&self, process: &Process) -> Option<(Verdict, Pattern, String)> {
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

    /// A longest of the shortest ways to `root` from those behind it, of who was asked about
    /// if there is any.
    pub(super) fn way_to(&self, root: i32, behind: &BTreeSet<i32>) -> Vec<Link> {
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
}
