#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "without /proc nothing is looked at")
)]

mod diagnosis;
mod finding;
mod graph;
mod judge;
mod knot;
mod letters;
mod pattern;
mod report;
mod scan;
mod verdict;
mod wait;
mod words;
mod world;

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

pub use diagnosis::{Counts, Diagnosis, ProcessView, WaitView};
pub use finding::{Finding, Link};
pub use pattern::Pattern;
pub use verdict::Verdict;

/// Examines these processes with all that descends from them, and whoever they wait for.
/// `between` is the time between the two looks.
///
/// # Errors
/// `Unsupported` where there is no `/proc`, `NotFound` with their numbers if some of the
/// processes are not there, and those of reading `/proc`.
///
/// # Blocking
/// For `between`, and while all processes are looked at.
pub fn examine(pids: &[i32], between: Duration) -> io::Result<Diagnosis> {
    examine_where(between, Caller::Takes, &|world| {
        these_processes(world, pids)
    })
}

/// As [`examine`], or [`examine_own`] if `pids` is empty, for a program that does nothing
/// else: of the caller's own descriptors stdout alone counts.
///
/// The others it has inherited and will not use. They would hold up every reader of such a
/// pipe only until the caller ends, and yet hide a deadlock, since the caller runs.
///
/// # Errors
/// Those of [`examine`].
///
/// # Blocking
/// As [`examine`].
pub fn examine_as_bystander(pids: &[i32], between: Duration) -> io::Result<Diagnosis> {
    let bystander = Caller::Bystander;
    match pids {
        [] => examine_where(between, bystander, &own_processes),
        pids => examine_where(between, bystander, &|world| these_processes(world, pids)),
    }
}

/// Examines all processes of this user, apart from the caller.
///
/// # Errors
/// Those of [`examine`].
///
/// # Blocking
/// As [`examine`].
pub fn examine_own(between: Duration) -> io::Result<Diagnosis> {
    examine_where(between, Caller::Takes, &own_processes)
}

/// Whether the caller's descriptors count as those of all others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// It may be one of those who write and read.
    Takes,
    /// It will use none but stdout.
    Bystander,
}

fn these_processes(world: &world::World, pids: &[i32]) -> io::Result<BTreeSet<i32>> {
    let asked: BTreeSet<i32> = pids.iter().copied().collect();
    let is_missing = |pid: &&i32| !world.processes.contains_key(pid);
    let missing: Vec<String> = asked
        .iter()
        .filter(is_missing)
        .map(i32::to_string)
        .collect();
    if !missing.is_empty() {
        let which = format!("no such process: {}", missing.join(", "));
        return Err(io::Error::new(io::ErrorKind::NotFound, which));
    }
    let own = own_pid();
    let is_asked = asked.contains(&own);
    let mut all = world.with_descendants(asked);
    if !is_asked {
        all.remove(&own);
    }
    Ok(all)
}

fn own_processes(world: &world::World) -> io::Result<BTreeSet<i32>> {
    let uid = rustix::process::getuid().as_raw();
    let own = own_pid();
    let mine = world.processes.values();
    let mine = mine.filter(|process| process.uid == Some(uid) && process.pid != own);
    // What hides its descriptors from its own user (ssh-agent) is not asked about.
    let mine = mine.filter(|process| process.gone || process.fds.is_some());
    Ok(mine.map(|process| process.pid).collect())
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Looks twice, and tells what follows for the processes that `choose` picks at the second
/// look.
fn examine_where(
    between: Duration,
    caller: Caller,
    choose: &dyn Fn(&world::World) -> io::Result<BTreeSet<i32>>,
) -> io::Result<Diagnosis> {
    let probe = scan::Probe::new();
    let disregard = |world: &mut world::World| {
        let own = world.processes.get_mut(&own_pid());
        if let (Caller::Bystander, Some(fds)) = (caller, own.and_then(|own| own.fds.as_mut())) {
            fds.retain(|fd| fd.number == 1);
        }
    };
    let mut first = scan::look()?;
    disregard(&mut first);
    let targets = choose(&first)?;
    if targets.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no such process"));
    }
    #[allow(
        clippy::disallowed_methods,
        reason = "no event tells of what does not happen"
    )]
    std::thread::sleep(between);
    let mut second = scan::look()?;
    disregard(&mut second);
    let mut graph = graph::Graph::of(&first, &second, &world::Births::new());
    // Questions that cost much are asked about those alone that seem to be stuck.
    let suspects = knot::stuck(&graph, knot::Doubts::Disregarded);
    let suspects = knot::within_cycles(&graph, &suspects);
    if !suspects.is_empty() {
        let keeps_creation = probe.is_some_and(|probe| probe.keeps_creation());
        let births = scan::look_closer(&mut second, &suspects, keeps_creation);
        disregard(&mut second);
        graph = graph::Graph::of(&first, &second, &births);
    }
    Ok(judge::diagnose(&first, &second, &graph, &targets, between))
}
