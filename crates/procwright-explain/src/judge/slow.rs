//! Writers that wait for a reader who goes on, but does not read.

use std::collections::BTreeSet;

use super::seen::Judge;
use crate::finding::Finding;
use crate::graph::{Edge, Why};
use crate::knot;
use crate::pattern::Pattern;
use crate::verdict::Verdict;
use crate::wait::Wait;
use crate::world::World;

impl Judge<'_> {
    /// Writers that wait for a reader who goes on, but does not read.
    pub(super) fn slow(&self, found: &[Finding]) -> Vec<Finding> {
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
            let small = self.small_pipes(std::slice::from_ref(&edge));
            let small = small.unwrap_or_default();
            let between = match edge.why {
                Why::Writes { of, .. } if of.socket().is_some() => "the connection",
                _ => "the pipe",
            };
            let behind: BTreeSet<i32> = self.behind_root(pid);
            findings.push(Finding {
                verdict: Verdict::Slow,
                pattern: Pattern::SlowReader,
                sentence: format!(
                    "{} writes and {} does not read it, so that {between} is full.{rates}",
                    self.who(pid),
                    self.who(edge.to)
                ),
                fix: Pattern::SlowReader.fix().to_owned() + &small,
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
    pub(super) fn throttled(&self, pid: i32) -> Option<Edge> {
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
    pub(super) fn rate(&self, pid: i32) -> Option<u64> {
        let before = self.first.processes.get(&pid)?.written?;
        let after = self.second.processes.get(&pid)?.written?;
        after.checked_sub(before)
    }
}
