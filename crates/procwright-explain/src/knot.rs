//! Sets of processes none of which can be released from outside the set.
//!
//! All waits are alternatives, so a process is released as soon as anybody who could end
//! one of its waits goes on. Who is left when all releases have been followed is stuck:
//! the greatest set whose members wait for members alone, the knot of the literature.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::graph::{Edge, Graph, Why};

/// What becomes of doubts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubts {
    /// What was not seen releases: who is left is stuck for certain.
    Release,
    /// What was not seen does nothing: who is left may be stuck.
    Disregarded,
}

/// The processes that nobody else releases.
pub(crate) fn stuck(graph: &Graph, doubts: Doubts) -> BTreeSet<i32> {
    let mut waiting_for: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let mut released = VecDeque::new();
    let mut stuck: BTreeSet<i32> = graph.nodes.keys().copied().collect();
    for (&pid, node) in &graph.nodes {
        let mut free = !node.free.is_empty();
        free |= doubts == Doubts::Release && !node.doubts.is_empty();
        let releases = |edge: &&Edge| doubts == Doubts::Release || edge.why != Why::MayUnlock;
        for edge in node.edges.iter().filter(releases) {
            match graph.nodes.contains_key(&edge.to) {
                true => waiting_for.entry(edge.to).or_default().push(pid),
                // It has ended, or was not seen.
                false => free = true,
            }
        }
        if free {
            released.push_back(pid);
            stuck.remove(&pid);
        }
    }
    while let Some(pid) = released.pop_front() {
        for &waiter in waiting_for.get(&pid).into_iter().flatten() {
            if stuck.remove(&waiter) {
                released.push_back(waiter);
            }
        }
    }
    stuck
}

/// The edges that can make a circle: a wait for somebody, not a signal by the way, nor what
/// somebody could do and should not.
pub(crate) fn real_edges(graph: &Graph, pid: i32) -> impl Iterator<Item = &Edge> {
    let edges = graph.node(pid).into_iter().flat_map(|node| &node.edges);
    edges.filter(|edge| !matches!(edge.why, Why::ChildSignal | Why::MayUnlock))
}

/// The processes that can be reached from `pid` within `set`, by one edge or more.
fn reachable(graph: &Graph, pid: i32, set: &BTreeSet<i32>) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut todo = vec![pid];
    while let Some(one) = todo.pop() {
        for edge in real_edges(graph, one).filter(|edge| set.contains(&edge.to)) {
            if found.insert(edge.to) {
                todo.push(edge.to);
            }
        }
    }
    found
}

/// Those of `set` that are in a circle of it, and those that could release them by whatever
/// way: a child's end, too, whose signal has a handler.
pub(crate) fn within_cycles(graph: &Graph, set: &BTreeSet<i32>) -> BTreeSet<i32> {
    let mut all: BTreeSet<i32> = cycles(graph, set).into_iter().flatten().collect();
    let mut todo: Vec<i32> = all.iter().copied().collect();
    while let Some(one) = todo.pop() {
        let edges = graph.node(one).into_iter().flat_map(|node| &node.edges);
        for edge in edges.filter(|edge| set.contains(&edge.to)) {
            if all.insert(edge.to) {
                todo.push(edge.to);
            }
        }
    }
    all
}

/// Groups of processes each of which waits, by others or at once, for each of its group.
pub(crate) fn cycles(graph: &Graph, set: &BTreeSet<i32>) -> Vec<BTreeSet<i32>> {
    let reach: BTreeMap<i32, BTreeSet<i32>> = set
        .iter()
        .map(|&pid| (pid, reachable(graph, pid, set)))
        .collect();
    let mut groups: Vec<BTreeSet<i32>> = Vec::new();
    for (&pid, reached) in &reach {
        if !reached.contains(&pid) || groups.iter().any(|group| group.contains(&pid)) {
            continue;
        }
        let back = |other: &&i32| reach.get(other).is_some_and(|r| r.contains(&pid));
        groups.push(reached.iter().filter(back).copied().collect());
    }
    groups
}

/// A shortest circle of edges through the members of a group. One that writes and has the read
/// end as well, as what a fork has left open, is no circle that tells anybody anything where
/// there is another.
pub(crate) fn shortest_cycle(graph: &Graph, group: &BTreeSet<i32>) -> Vec<Edge> {
    let circles = group
        .iter()
        .filter_map(|&pid| circle_through(graph, group, pid));
    let is_own_write =
        |circle: &[Edge]| matches!(circle, [one] if matches!(one.why, Why::Writes { .. }));
    let order = |circle: &Vec<Edge>| (is_own_write(circle), circle.len());
    circles.min_by_key(order).unwrap_or_default()
}

fn circle_through(graph: &Graph, group: &BTreeSet<i32>, begin: i32) -> Option<Vec<Edge>> {
    let mut came_by: BTreeMap<i32, Edge> = BTreeMap::new();
    let mut todo = VecDeque::from([begin]);
    while let Some(pid) = todo.pop_front() {
        for edge in real_edges(graph, pid).filter(|edge| group.contains(&edge.to)) {
            if came_by.contains_key(&edge.to) {
                continue;
            }
            came_by.insert(edge.to, edge.clone());
            if edge.to == begin {
                let mut way = vec![edge.clone()];
                while way[way.len() - 1].from != begin {
                    way.push(came_by.get(&way[way.len() - 1].from)?.clone());
                }
                way.reverse();
                return Some(way);
            }
            todo.push_back(edge.to);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Doubt, Free, Node};

    fn graph(edges: &[(i32, i32)], free: &[i32], doubts: &[i32]) -> Graph {
        let mut graph = Graph::default();
        for &(from, to) in edges {
            graph.nodes.entry(to).or_default();
            let node: &mut Node = graph.nodes.entry(from).or_default();
            node.edges.push(Edge {
                from,
                tid: from,
                to,
                why: Why::Ends,
            });
        }
        for pid in free {
            graph.nodes.entry(*pid).or_default().free.push(Free::Runs);
        }
        for pid in doubts {
            let node = graph.nodes.entry(*pid).or_default();
            node.doubts.push(Doubt::HiddenCall);
        }
        graph
    }

    #[test]
    fn a_circle_is_stuck_unless_one_of_it_has_a_way_out() {
        let closed = graph(&[(1, 2), (2, 1), (3, 1)], &[], &[]);
        assert_eq!(stuck(&closed, Doubts::Release), BTreeSet::from([1, 2, 3]));
        assert_eq!(cycles(&closed, &BTreeSet::from([1, 2, 3])).len(), 1);
        // Somebody who runs has an end of the pipe as well.
        let open = graph(&[(1, 2), (2, 1), (2, 4), (3, 1)], &[4], &[]);
        assert!(stuck(&open, Doubts::Release).is_empty());
        assert!(stuck(&open, Doubts::Disregarded).is_empty());
    }

    #[test]
    fn who_is_waited_for_by_a_signal_alone_is_looked_at_too() {
        let mut ring = graph(&[(1, 2), (2, 1), (1, 3), (3, 1)], &[], &[]);
        let signal = ring.nodes.get_mut(&1).unwrap().edges.last_mut().unwrap();
        signal.why = Why::ChildSignal;
        let all = BTreeSet::from([1, 2, 3]);
        assert_eq!(cycles(&ring, &all), [BTreeSet::from([1, 2])]);
        assert_eq!(within_cycles(&ring, &all), all);
    }

    #[test]
    fn a_doubt_releases_where_it_counts() {
        let doubtful = graph(&[(1, 2), (2, 1)], &[], &[2]);
        assert!(stuck(&doubtful, Doubts::Release).is_empty());
        assert_eq!(stuck(&doubtful, Doubts::Disregarded).len(), 2);
    }

    #[test]
    fn who_may_unlock_releases_as_a_doubt_does() {
        let shared = |free: &[i32]| {
            let mut shared = graph(&[(1, 1), (1, 2), (2, 1)], free, &[]);
            let edges = &mut shared.nodes.get_mut(&1).unwrap().edges;
            edges.last_mut().unwrap().why = Why::MayUnlock;
            shared
        };
        let all = BTreeSet::from([1, 2]);
        assert_eq!(
            stuck(&shared(&[]), Doubts::Release),
            all,
            "it waits as well"
        );
        assert!(stuck(&shared(&[2]), Doubts::Release).is_empty());
        let one = BTreeSet::from([1]);
        assert_eq!(stuck(&shared(&[2]), Doubts::Disregarded), one);
        assert_eq!(cycles(&shared(&[]), &all), [one]);
        assert_eq!(
            within_cycles(&shared(&[]), &all),
            all,
            "it is looked at too"
        );
    }

    #[test]
    fn who_is_not_there_releases() {
        let mut gone = graph(&[(1, 2), (2, 1), (2, 9)], &[], &[]);
        gone.nodes.remove(&9);
        assert!(stuck(&gone, Doubts::Disregarded).is_empty());
    }

    #[test]
    fn the_shortest_circle_is_shown() {
        let two = graph(&[(1, 2), (2, 3), (3, 1), (2, 1), (5, 5)], &[], &[]);
        let all = BTreeSet::from([1, 2, 3, 5]);
        let groups = cycles(&two, &all);
        assert_eq!(groups, [BTreeSet::from([1, 2, 3]), BTreeSet::from([5])]);
        assert_eq!(shortest_cycle(&two, &groups[0]).len(), 2);
        assert_eq!(shortest_cycle(&two, &groups[1]).len(), 1);
    }

    #[test]
    fn a_write_to_oneself_is_shown_only_where_there_is_no_other_circle() {
        let mut both = graph(&[(1, 2), (2, 1), (2, 2)], &[], &[]);
        let own = both.nodes.get_mut(&2).unwrap().edges.last_mut().unwrap();
        own.why = Why::Writes {
            fd: 4,
            of: crate::world::Object::Pipe(7),
            end: 3,
            set: false,
        };
        let group = BTreeSet::from([1, 2]);
        assert_eq!(shortest_cycle(&both, &group).len(), 2);
        both.nodes.remove(&1);
        assert_eq!(shortest_cycle(&both, &BTreeSet::from([2])).len(), 1);
    }
}
