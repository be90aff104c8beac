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
            // One that was not there when the outline was made may be the child that is waited
            // for: a shell starts them one after the other.
            let newcomers = scan::newcomers(world)?;
            if !newcomers.is_empty() {
                scan::look_at(world, &newcomers)?;
                disregard(world);
            }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::follow;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use test_support::{eventually, watchdog};

    #[test]
    fn a_child_that_has_come_since_is_seen() {
        let _watchdog = watchdog("a_child_that_has_come_since_is_seen");
        let mut shell = Command::new("sh")
            .args(["-c", "read line; cat; :"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let pid = shell.id().cast_signed();
        let outline = scan::outline().expect("a look");
        let targets = BTreeSet::from([pid]);
        assert_eq!(outline.with_descendants(targets.clone()), targets);
        let mut stdin = shell.stdin.take().expect("its stdin");
        stdin.write_all(b"word\n").expect("a reader");
        // Nothing announces that the shell has come to its wait, and the child to its read.
        eventually(|| {
            let mut world = outline.clone();
            let graph = look(&mut world, &targets, |_| ()).expect("a look");
            // They may be most of all processes.
            graph.is_none_or(|graph| {
                let waiting = follow::waiting(&world, &graph, pid).expect("an answer");
                waiting.text.starts_with("cat (")
            })
        });
        drop(stdin);
        shell.wait().expect("its end");
    }
}
