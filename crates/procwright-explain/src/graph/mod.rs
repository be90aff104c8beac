//! Who could end whose wait.
//!
//! An edge goes from a process to one that could end a wait of it: by a write, a read, a
//! close, its end, an unlock. Edges are alternatives: any one of them may do. Besides, a
//! process may be free to go on without any other, and there may be doubts, things that
//! were not seen and could release it.

mod builder;
mod node;
mod signals;

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{Births, World};
use builder::Builder;
pub(crate) use node::{Doubt, Edge, Free, Node, Why};

/// The processes, and who could end whose wait. One of which there is but an outline has no
/// node here, as one that has ended: it may do anything.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: BTreeMap<i32, Node>,
}

impl Graph {
    /// The graph of two looks. An edge or a doubt of either counts.
    pub(crate) fn of(first: &World, second: &World, births: &Births) -> Graph {
        let mut graph = Graph::default();
        for world in [first, second] {
            Builder::new(world, births).add_to(&mut graph.nodes);
        }
        for (pid, node) in &mut graph.nodes {
            node.drop_repeated_edges();
            let before = first.processes.get(pid);
            let after = second.processes.get(pid);
            let slept = before.zip(after).is_some_and(|(a, b)| b.has_slept_since(a));
            if !slept {
                node.add_free(Free::Moves);
            }
        }
        graph
    }

    /// The graph of one look, as if nobody ran from then on.
    pub(crate) fn of_one(world: &World) -> Graph {
        let mut graph = Graph::default();
        Builder::new(world, &Births::new()).add_to(&mut graph.nodes);
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

#[cfg(test)]
mod tests;
