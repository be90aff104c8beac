//! A look at those alone whom a question concerns.
//!
//! Of all processes it is read what they have open, and of those who were asked about what
//! they wait for. That leads to those who could end these waits, who are looked at in turn.
//! Where nobody is found to hang so, nobody hangs: of the others none could change it.

use std::collections::BTreeSet;
use std::io;

use crate::graph::Graph;
use crate::scan;
use crate::world::{Process, World};

/// Steps from one process to the next. A longer chain is dearer than a look at all.
const STEPS: usize = 16;

/// Has those in `world`, of outlines, looked at to whom the waits of `targets` lead, and returns
/// their graph. `None` if they are most of all there are: a whole look is no dearer.
///
/// `disregard` takes out of what was looked at what is not to count.
pub(crate) fn look(
    world: &mut World,
    targets: &BTreeSet<i32>,
    disregard: impl Fn(&mut World),
) -> io::Result<Option<Graph>> {
    let most = world.processes.len() / 2;
    let mut reached = targets.clone();
    for _ in 0..STEPS {
        let outlines = reached.iter().copied().filter(|pid| world.is_outline(*pid));
        let outlines: BTreeSet<i32> = outlines.collect();
        if outlines.len() > most {
            return Ok(None);
        }
        scan::look_at(world, &outlines)?;
        disregard(world);
        let mut graph = Graph::of_one(world);
        reached = graph.reached(targets);
        if reached.iter().any(|pid| world.is_outline(*pid)) {
            continue;
        }
        let mut looked_at = reached.iter().filter_map(|pid| world.processes.get(pid));
        if looked_at.any(Process::may_wait_for_children) {
            // What they trace counts as their children do.
            scan::add_tracers(world)?;
            graph = Graph::of_one(world);
            reached = graph.reached(targets);
            if reached.iter().any(|pid| world.is_outline(*pid)) {
                continue;
            }
        }
        return Ok(Some(graph));
    }
    Ok(None)
}
