//! Those who could end a wait, by name.

use std::collections::BTreeMap;

use crate::graph::{Edge, Why};
use crate::waiting::WaitedFor;
use crate::words;
use crate::world::World;

/// The largest number of holders that a text names.
const MOST_NAMED: usize = 4;

/// The processes that these edges lead to, each once, in the order of their numbers.
pub(crate) fn holders(world: &World, edges: &[&Edge]) -> Vec<WaitedFor> {
    let mut ends = BTreeMap::new();
    for edge in edges {
        ends.entry(edge.to).or_insert_with(|| end(edge.why));
    }
    let found = ends.into_iter().filter_map(|(pid, fd)| {
        let process = world.processes.get(&pid)?;
        Some(WaitedFor {
            pid,
            name: process.name.clone(),
            fd,
            start_ticks: process.start,
        })
    });
    found.collect()
}

/// The descriptor of the other.
fn end(why: Why) -> Option<i32> {
    match why {
        Why::Reads { end, .. } | Why::Writes { end, .. } => Some(end),
        Why::Ends
        | Why::Unlocks
        | Why::Mutex
        | Why::Abandoned { .. }
        | Why::MayUnlock
        | Why::ChildSignal => None,
    }
}

/// True of a wait for one of several descriptors.
pub(crate) fn is_in_set(why: Why) -> bool {
    matches!(
        why,
        Why::Reads { set: true, .. } | Why::Writes { set: true, .. }
    )
}

/// Their names and numbers, cut where there are many: `python3 (55), sleep (56)`.
pub(crate) fn named(holders: &[WaitedFor]) -> String {
    joined(holders, |one| format!("{} ({})", one.name, one.pid))
}

/// What a thread waits for whom: `, held by python3 (55, fd 4)`, or nothing if that is not known.
pub(crate) fn told(world: &World, edges: &[&Edge]) -> String {
    let mut text = String::new();
    let holds = |why: Why| matches!(why, Why::Reads { .. } | Why::Mutex);
    let writes = |why: Why| matches!(why, Why::Writes { .. });
    let ends = |why: Why| matches!(why, Why::Ends);
    let unlocks = |why: Why| matches!(why, Why::Unlocks);
    let kinds: [(&str, &dyn Fn(Why) -> bool); 4] = [
        ("held by", &holds),
        ("to be read by", &writes),
        ("which is", &ends),
        ("which has", &unlocks),
    ];
    for (how, is_kind) in kinds {
        let of_kind: Vec<&Edge> = edges
            .iter()
            .copied()
            .filter(|one| is_kind(one.why))
            .collect();
        let found = holders(world, &of_kind);
        if !found.is_empty() {
            let named = joined(&found, |one| match one.fd {
                Some(fd) => format!("{} ({}, {})", one.name, one.pid, words::fd(fd)),
                None => format!("{} ({})", one.name, one.pid),
            });
            // Behind a list.
            let sign = if of_kind.iter().any(|one| is_in_set(one.why)) {
                ';'
            } else {
                ','
            };
            text += &format!("{sign} {how} {named}");
        }
    }
    text
}

fn joined(holders: &[WaitedFor], word: impl Fn(&WaitedFor) -> String) -> String {
    let names: Vec<String> = holders.iter().take(MOST_NAMED).map(word).collect();
    match holders.len().saturating_sub(MOST_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
