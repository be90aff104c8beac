//! What is judged, and what every part of the judgement asks about it.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::finding::Link;
use crate::graph::{Edge, Graph};
use crate::knot::{self, Doubts};
use crate::words;
use crate::world::{Process, Thread, World};

/// Two looks, what follows from them, and who was asked about.
pub(super) struct Judge<'a> {
    pub(super) first: &'a World,
    pub(super) second: &'a World,
    pub(super) graph: &'a Graph,
    pub(super) targets: &'a BTreeSet<i32>,
    pub(super) between: Duration,
}

impl Judge<'_> {
    pub(super) fn process(&self, pid: i32) -> Option<&Process> {
        let second = self.second.processes.get(&pid);
        second.or_else(|| self.first.processes.get(&pid))
    }

    /// Name and number, as every text has them.
    pub(super) fn who(&self, pid: i32) -> String {
        match self.process(pid) {
            Some(process) => format!("{} ({pid})", process.name),
            None => format!("({pid})"),
        }
    }

    pub(super) fn link(&self, edge: &Edge) -> Link {
        words::link(edge, &self.who(edge.to))
    }

    /// Threads that sleep in the same call at both looks, and have slept in between.
    pub(super) fn sleepers(&self, pid: i32) -> impl Iterator<Item = &Thread> {
        let before = self.first.processes.get(&pid);
        let after = self.second.processes.get(&pid);
        let pair = before.zip(after).filter(|(a, b)| a.start == b.start);
        pair.into_iter().flat_map(|(before, after)| {
            let slept = |thread: &&Thread| {
                let mut before = before.threads.iter();
                before.any(|before| thread.has_slept_since(before))
            };
            after.threads.iter().filter(slept)
        })
    }

    /// Members of `stuck` outside of `group` that wait for it.
    pub(super) fn behind(&self, stuck: &BTreeSet<i32>, group: &BTreeSet<i32>) -> BTreeSet<i32> {
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

    /// Those who wait for `root` and for nobody who goes on: the stuck ones if it never did.
    pub(super) fn behind_root(&self, root: i32) -> BTreeSet<i32> {
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
}
