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
        let awaited = awaited(world, &reached);
        if awaited.as_ref().is_none_or(|pids| !pids.is_empty()) {
            // One that was not there when the outline was made may be the child that is waited
            // for: a shell starts them one after the other.
            let newcomers = scan::newcomers(world)?;
            if !newcomers.is_empty() {
                scan::look_at(world, &newcomers)?;
                disregard(world);
            }
            // What they trace counts as their children do.
            scan::add_tracers(world, awaited.as_ref())?;
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

/// Whose end could release one of these; `None` if that of any child could.
fn awaited(world: &World, pids: &BTreeSet<i32>) -> Option<BTreeSet<i32>> {
    let all = pids.iter().filter_map(|pid| world.processes.get(pid));
    let awaited: Option<Vec<Vec<i32>>> = all.map(Process::awaited).collect();
    Some(awaited?.into_iter().flatten().collect())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::follow;
    use crate::wait::{Children, Wait};
    use std::io::Write;
    use std::process::{Command, Stdio};
    use test_support::{eventually, watchdog};

    #[test]
    fn who_waits_for_one_child_awaits_that_alone() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut world = scan::glance(&[own]).expect("a look");
        let mut awaited_so = |waits: &[Wait], caught: u64| {
            let process = world.processes.get_mut(&own).expect("this process");
            process.caught = caught;
            let thread = process.threads[0].clone();
            process.threads = vec![thread; waits.len()];
            for (thread, wait) in process.threads.iter_mut().zip(waits) {
                thread.wait = wait.clone();
            }
            awaited(&world, &BTreeSet::from([own]))
        };
        let child = |children| Wait::Child(children);
        let (one, two) = (child(Children::One(7)), child(Children::One(8)));
        let sigchld = 1 << 16;
        assert_eq!(awaited_so(&[Wait::Time], 0), Some(BTreeSet::new()));
        assert_eq!(awaited_so(&[one, two], 0), Some(BTreeSet::from([7, 8])));
        for any in [Children::Any, Children::Group(0), Children::Vfork] {
            let waits = [child(Children::One(7)), child(any)];
            assert_eq!(awaited_so(&waits, 0), None, "{any:?}");
        }
        assert_eq!(awaited_so(&[Wait::Hidden(String::new())], 0), None);
        assert_eq!(awaited_so(&[Wait::Time], sigchld), None);
    }

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
