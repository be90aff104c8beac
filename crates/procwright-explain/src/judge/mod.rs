//! From two looks and their graph to verdicts.

mod circles;
mod roots;
mod seen;
mod slow;
mod small_pipes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::diagnosis::{Counts, Diagnosis, ProcessView, WaitView};
use crate::finding::Finding;
use crate::graph::{Edge, Graph};
use crate::holders;
use crate::knot;
use crate::scan;
use crate::verdict::Verdict;
use crate::wait::Wait;
use crate::words;
use crate::world::{Object, Process, Thread, World};
use seen::Judge;

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

    fn diagnosis(&self, findings: Vec<Finding>) -> Diagnosis {
        let mut shown = self.targets.clone();
        for finding in &findings {
            shown.extend(finding.processes.iter().chain(&finding.behind));
            for link in &finding.links {
                shown.extend([link.from, link.to]);
            }
        }
        let commands = scan::command_lines(&shown);
        let views = shown
            .iter()
            .filter_map(|&pid| self.view(pid, &findings, &commands));
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
            let is_restarted = |view: &&ProcessView| {
                let process = self.process(view.pid);
                process.is_some_and(Process::is_restarted)
            };
            return match (hidden.len(), hidden.iter().all(is_restarted)) {
                (1, true) => format!(
                    "It may hang: {who} is in a call that was interrupted, as by a stop, and the \
                     kernel does not tell which (restart_syscall)."
                ),
                (count, true) => format!(
                    "They may hang: {count} processes, such as {who}, are in calls that were \
                     interrupted, as by a stop, and the kernel does not tell which \
                     (restart_syscall)."
                ),
                (1, false) => format!("It may hang: {who} cannot be looked at. As root it can."),
                (count, false) => format!(
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

    fn view(
        &self,
        pid: i32,
        findings: &[Finding],
        commands: &BTreeMap<i32, String>,
    ) -> Option<ProcessView> {
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
            command: commands.get(&pid).cloned(),
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
