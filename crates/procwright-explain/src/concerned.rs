//! A look at those alone whom a question concerns.
//!
//! It begins with those who were asked about and their descendants. What they wait for leads to
//! those who could end these waits, who are looked at in turn; of all others it is read what they
//! have open, and whose children they are, only where a wait makes that matter. Where nobody is
//! found to hang so, nobody hangs: of the others none could change it.

use std::collections::BTreeSet;
use std::io;

use crate::graph::Graph;
use crate::needs::Needs;
use crate::scan;
use crate::world::{Others, Process, World};

/// Steps from one process to the next. A longer chain is dearer than a look at all.
const STEPS: usize = 16;

/// Has those looked at to whom the waits of `targets` lead, who are in `world` with all that
/// descends from them, and returns their graph. `None` if they are most of all there are: a whole
/// look is no dearer.
///
/// `disregard` takes out of what was looked at what is not to count.
pub(crate) fn look(
    world: &mut World,
    targets: &BTreeSet<i32>,
    disregard: impl Fn(&mut World),
) -> io::Result<Option<Graph>> {
    let mut asked = Asked::default();
    for _ in 0..STEPS {
        let mut graph = Graph::of_one(world);
        let reached = graph.reached(targets);
        let outlines = outlines(world, &reached);
        if outlines.len() > most(world) {
            return Ok(None);
        }
        if !outlines.is_empty() {
            scan::look_at(world, &outlines)?;
            disregard(world);
            continue;
        }
        if !matches!(world.others, Others::None) {
            let needs = Needs::of(world, &reached, targets);
            if !asked.supply(world, &needs, targets)? {
                return Ok(Some(graph));
            }
            disregard(world);
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
            if !self::outlines(world, &graph.reached(targets)).is_empty() {
                continue;
            }
        }
        return Ok(Some(graph));
    }
    Ok(None)
}

/// Those of whom there is an outline alone.
fn outlines(world: &World, pids: &BTreeSet<i32>) -> BTreeSet<i32> {
    let outlines = pids.iter().copied().filter(|pid| world.is_outline(*pid));
    outlines.collect()
}

/// Half of all processes, as far as they are known.
fn most(world: &World) -> usize {
    match &world.others {
        Others::None => world.processes.len() / 2,
        Others::Links(links) => usize::midpoint(world.processes.len(), links.len()),
        Others::Unasked => usize::MAX,
    }
}

/// What was asked already, whether there was an answer or not.
#[derive(Default)]
struct Asked {
    /// Those whose end is waited for, and who were looked for.
    ends: BTreeSet<i32>,
    /// Those whose children were listed.
    parents: BTreeSet<i32>,
}

impl Asked {
    /// Adds to `world` what these waits need. False if there is nothing to add.
    fn supply(
        &mut self,
        world: &mut World,
        needs: &Needs,
        targets: &BTreeSet<i32>,
    ) -> io::Result<bool> {
        let mut has_more = false;
        let mut needs_all = needs.all;
        for &pid in &needs.parents {
            if self.parents.insert(pid) {
                has_more = true;
                // Where children are not listed, everybody is asked whose child he is.
                needs_all |= !scan::add_children(world, pid)?;
            }
        }
        has_more |= !needs.tracers.is_empty() && scan::add_traced(world, &needs.tracers)?;
        let is_new = |pid: &i32| !world.processes.contains_key(pid) || world.is_outline(*pid);
        let mut ends: BTreeSet<i32> = needs.ends.iter().copied().filter(is_new).collect();
        ends.retain(|pid| self.ends.insert(*pid));
        if !ends.is_empty() {
            scan::look_at_each(world, &ends)?;
            has_more = true;
        }
        let needs_paths = needs_all || !needs.are_of_pipes();
        let is_unasked = matches!(world.others, Others::Unasked);
        if is_unasked && (needs_all || !needs.holders.is_empty()) {
            // Who starts a program has most often the other ends of its pipes, and many more: he
            // is looked at at once, so that his links are not read twice.
            let parents = parents(world, targets);
            match needs_paths {
                true => scan::add_links(world, &parents)?,
                false => scan::add_pipes(world, &parents)?,
            }
            has_more = true;
        }
        if needs_paths {
            has_more |= scan::tell_paths(world)?;
        }
        if needs_all {
            scan::outline_others(world)?;
            has_more = true;
        } else {
            let holders = scan::holders(world, &needs.holders);
            has_more |= !holders.is_empty();
            scan::outline_these(world, &holders)?;
        }
        if has_more {
            scan::connect(world)?;
        }
        Ok(has_more)
    }
}

/// The parents of these whom `world` has not.
fn parents(world: &World, pids: &BTreeSet<i32>) -> BTreeSet<i32> {
    let all = pids.iter().filter_map(|pid| world.processes.get(pid));
    let parents = all.map(|process| process.ppid).filter(|pid| *pid > 0);
    parents
        .filter(|pid| !world.processes.contains_key(pid))
        .collect()
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
        let mut world = scan::own_family();
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
        let mut outline = scan::family(&[pid]).expect("a look");
        scan::add_links(&mut outline, &BTreeSet::new()).expect("their links");
        scan::outline_others(&mut outline).expect("their parents");
        outline.processes.get_mut(&pid).expect("it").is_outline = true;
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
