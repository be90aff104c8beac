//! Why does it hang? A look at all processes, twice, a short time apart, and then a verdict:
//! a deadlock, proven or possible; who waits for input; slow, stopped, busy, healthy.
//!
//! [`examine`] gives a [`Diagnosis`], which names the processes, what each waits for, the
//! pattern and what to do. Nothing is disturbed: all comes from `/proc`, without ptrace,
//! and no descriptor of theirs is opened.
//!
//! Proven means that each process of a set sleeps in a call that only another of the set
//! could end, in two looks with unchanged counters. Whoever may not be looked at could be
//! the one who ends it: then it is possible, and what would settle it is said.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "without /proc nothing is looked at")
)]

mod concerned;
mod diagnosis;
mod finding;
mod follow;
mod graph;
mod holders;
mod input_wait;
mod judge;
mod knot;
mod letters;
mod needs;
mod pattern;
mod report;
mod scan;
mod verdict;
mod wait;
mod waiting;
mod words;
mod world;

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

pub use diagnosis::{Counts, Diagnosis, ProcessView, WaitView};
pub use finding::{Finding, Link};
pub use input_wait::{InputLook, InputWait, input_wait, input_waits};
pub use pattern::Pattern;
pub use verdict::Verdict;
pub use waiting::{WaitKind, WaitedFor, Waiting};

/// The time between two looks that tells who sleeps from who is between two sleeps, where nobody
/// asks for another.
pub const BETWEEN: Duration = Duration::from_millis(200);

/// The shortest limit, or wait, at whose end it is said why a program has not ended: an
/// examination would take most of a shorter one.
pub const WORTH_A_LOOK: Duration = Duration::from_secs(1);

/// What this process waits for, with all that descends from it, as one look sees it.
///
/// Others are looked at as far as a wait leads to them, at most all.
///
/// ```
/// use procwright_explain::{WaitKind, waiting_for};
///
/// let waiting = waiting_for(std::process::id() as i32)?;
/// assert_eq!(waiting.kind, WaitKind::Nothing); // it runs
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// `Unsupported` where there is no `/proc`, `NotFound` if there is no such process, and those
/// of reading `/proc`.
///
/// # Blocking
/// While all processes are looked at.
pub fn waiting_for(pid: i32) -> io::Result<Waiting> {
    let found = waiting_for_each(&[pid])?.pop().flatten();
    found.ok_or_else(|| missing(&[pid]))
}

/// What each of these processes waits for, as one look sees them all; none of one that is not
/// there.
fn waiting_for_each(pids: &[i32]) -> io::Result<Vec<Option<Waiting>>> {
    let mut seen = scan::family(pids)?;
    let targets = seen.with_descendants(pids.iter().copied().collect());
    let graph = match concerned::look(&mut seen, &targets, |_| ())? {
        Some(graph) => graph,
        None => {
            seen = scan::look()?;
            graph::Graph::of_one(&seen)
        }
    };
    let of = |pid: &i32| follow::waiting(&seen, &graph, *pid);
    Ok(pids.iter().map(of).collect())
}

/// Examines these processes with all that descends from them, and whoever they wait for.
/// `between` is the time between the two looks. All others are looked at where one of these seems
/// to hang.
///
/// # Errors
/// `Unsupported` where there is no `/proc`, `NotFound` with their numbers if some of the
/// processes are not there, and those of reading `/proc`.
///
/// # Blocking
/// For `between`, and while these are looked at, or all: some milliseconds, and some tens for
/// thousands of processes.
pub fn examine(pids: &[i32], between: Duration) -> io::Result<Diagnosis> {
    let begun = Examination::begin(pids)?;
    pause(between);
    begun.finish()
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
    let begun = Examination::begin_as(pids, Caller::Bystander)?;
    pause(between);
    begun.finish()
}

/// As [`examine`], for a thread of one of these processes that does nothing but look after them:
/// what the calling thread does is left out, and what it could do.
///
/// Of a program that hangs in its other threads it says so, where [`examine`] would say that it
/// is busy.
///
/// # Errors
/// Those of [`examine`].
///
/// # Blocking
/// As [`examine`].
pub fn examine_as_onlooker(pids: &[i32], between: Duration) -> io::Result<Diagnosis> {
    let begun = Examination::begin_as(pids, Caller::Onlooker)?;
    pause(between);
    begun.finish()
}

/// Examines all processes of this user, apart from the caller.
///
/// # Errors
/// Those of [`examine`].
///
/// # Blocking
/// As [`examine`].
pub fn examine_own(between: Duration) -> io::Result<Diagnosis> {
    examine(&[], between)
}

fn pause(between: Duration) {
    #[allow(
        clippy::disallowed_methods,
        reason = "no event tells of what does not happen"
    )]
    std::thread::sleep(between);
}

/// An examination whose caller has something else to do between its two looks.
///
/// ```
/// use procwright_explain::{Examination, Verdict};
/// use std::time::{Duration, Instant};
///
/// let begun = Examination::begin(&[std::process::id() as i32])?;
/// std::thread::sleep(Duration::from_millis(20));
/// assert_eq!(begun.finish()?.verdict, Verdict::Busy);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Examination {
    first: world::World,
    /// What follows from it alone.
    before: graph::Graph,
    began: Instant,
    targets: BTreeSet<i32>,
    /// The numbers that were asked about.
    asked: Vec<i32>,
    caller: Caller,
    probe: Option<scan::Probe>,
}

/// Two looks, and what follows from both.
struct Seen {
    first: world::World,
    second: world::World,
    graph: graph::Graph,
    between: Duration,
}

impl Seen {
    /// What follows for these processes, one of which may be `asked` about alone.
    fn diagnosis(&self, targets: &BTreeSet<i32>, asked: Option<i32>) -> Diagnosis {
        let Seen {
            first,
            second,
            graph,
            between,
        } = self;
        let waiting = asked.and_then(|pid| follow::waiting(second, graph, pid));
        let diagnosis = judge::diagnose(first, second, graph, targets, *between);
        diagnosis.with_waiting(waiting)
    }
}

/// Whether the caller counts as all others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// It may be one of those who write and read.
    Takes,
    /// It will use none but stdout.
    Bystander,
    /// They do, and the thread that looks is none of those who are looked at.
    Onlooker,
}

impl Caller {
    /// Leaves out what a caller does not use.
    fn disregard(self, world: &mut world::World) {
        let Some(own) = world.processes.get_mut(&own_pid()) else {
            return;
        };
        match (self, &mut own.fds) {
            (Caller::Takes, _) | (Caller::Bystander, None) => {}
            (Caller::Bystander, Some(fds)) => fds.retain(|fd| fd.number == 1),
            (Caller::Onlooker, _) => {
                let lookers = &world.lookers;
                own.threads.retain(|thread| !lookers.contains(&thread.tid));
            }
        }
    }
}

impl Examination {
    /// Looks for the first time at these processes, or, if `pids` is empty, at those that
    /// [`examine_own`] examines.
    ///
    /// # Errors
    /// Those of [`examine`].
    ///
    /// # Blocking
    /// While all processes are looked at.
    pub fn begin(pids: &[i32]) -> io::Result<Examination> {
        Examination::begin_as(pids, Caller::Takes)
    }

    /// Looks for the first time at those of these processes that are there, for
    /// [`finish_each`](Examination::finish_each).
    ///
    /// # Errors
    /// `Unsupported` where there is no `/proc`, and those of reading `/proc`.
    ///
    /// # Blocking
    /// While all processes are looked at.
    pub fn begin_each(pids: &[i32]) -> io::Result<Examination> {
        let probe = scan::Probe::new();
        let mut first = scan::look()?;
        let began = Instant::now();
        let is_there = |pid: &i32| first.processes.contains_key(pid);
        let asked: Vec<i32> = pids.iter().copied().filter(is_there).collect();
        let targets = these_processes(&first, &asked)?;
        Ok(Examination {
            before: graph_with_frozen(&mut first, &targets),
            targets,
            first,
            began,
            asked,
            caller: Caller::Takes,
            probe,
        })
    }

    fn begin_as(pids: &[i32], caller: Caller) -> io::Result<Examination> {
        match pids {
            [] => Examination::begin_with_all(pids, caller),
            pids => match Examination::begin_with_concerned(pids, caller)? {
                Some(begun) => Ok(begun),
                None => Examination::begin_with_all(pids, caller),
            },
        }
    }

    /// Looks at all processes.
    fn begin_with_all(pids: &[i32], caller: Caller) -> io::Result<Examination> {
        let probe = scan::Probe::new();
        let mut first = scan::look()?;
        let began = Instant::now();
        caller.disregard(&mut first);
        let targets = match pids {
            [] => own_processes(&first)?,
            pids => these_processes(&first, pids)?,
        };
        if targets.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no such process"));
        }
        Ok(Examination {
            before: graph_with_frozen(&mut first, &targets),
            first,
            began,
            targets,
            asked: pids.to_vec(),
            caller,
            probe,
        })
    }

    /// Looks at those alone whom these processes wait for. `None` if there is something to
    /// find: then all count, since whoever was not looked at could be part of it.
    fn begin_with_concerned(pids: &[i32], caller: Caller) -> io::Result<Option<Examination>> {
        let mut first = scan::family(pids)?;
        scan::tell_frozen(&mut first, &pids.iter().copied().collect());
        // Of who is held up, or stopped, there will be something to tell.
        let is_told_of = |one: &world::Process| one.is_stopped() || one.waits_for_room();
        let mut asked = pids.iter().filter_map(|pid| first.processes.get(pid));
        if asked.any(is_told_of) {
            return Ok(None);
        }
        caller.disregard(&mut first);
        let targets = these_processes(&first, pids)?;
        let disregard = |world: &mut world::World| caller.disregard(world);
        let Some(before) = concerned::look(&mut first, &targets, disregard)? else {
            return Ok(None);
        };
        let began = Instant::now();
        let hangs = targets.is_empty()
            || judge::has_findings(&first, &before, &targets)
            || scan::tell_frozen(&mut first, &before.reached(&targets));
        Ok((!hangs).then(|| Examination {
            first,
            before,
            began,
            targets,
            asked: pids.to_vec(),
            caller,
            probe: None,
        }))
    }

    /// Looks for the second time, and tells what follows.
    ///
    /// # Errors
    /// Those of reading `/proc`.
    ///
    /// # Blocking
    /// While all processes are looked at. If the first look saw nobody who hangs, and this one
    /// does, it begins anew, and takes once more the time between the two.
    pub fn finish(self) -> io::Result<Diagnosis> {
        let between = self.began.elapsed();
        let anew = self
            .first
            .is_partial()
            .then(|| (self.asked.clone(), self.caller));
        let diagnosis = self.diagnose()?;
        match anew {
            // Whoever was an outline at the first look could be part of it.
            Some((asked, caller)) if !diagnosis.findings.is_empty() => {
                let begun = Examination::begin_with_all(&asked, caller)?;
                pause(between);
                begun.diagnose()
            }
            _ => Ok(diagnosis),
        }
    }

    fn diagnose(self) -> io::Result<Diagnosis> {
        let (targets, asked) = (self.targets.clone(), self.asked.clone());
        let seen = self.look_again()?;
        Ok(match asked[..] {
            [only] => seen.diagnosis(&targets, Some(only)),
            _ => seen.diagnosis(&targets, None),
        })
    }

    /// Looks for the second time, and tells what follows for each process that was asked about
    /// by its number: what [`examine`] would say of it alone. Those of which the first look has
    /// found nothing are left out.
    ///
    /// ```
    /// use procwright_explain::Examination;
    ///
    /// let own = std::process::id() as i32;
    /// let found = Examination::begin_each(&[own, i32::MAX])?.finish_each()?;
    /// assert_eq!(found.len(), 1);
    /// assert_eq!(found[0].0, own);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of reading `/proc`.
    ///
    /// # Blocking
    /// While all processes are looked at.
    pub fn finish_each(self) -> io::Result<Vec<(i32, Diagnosis)>> {
        let asked = self.asked.clone();
        let seen = self.look_again()?;
        let of = |pid: i32| {
            let targets = these_processes(&seen.first, &[pid])?;
            Ok((pid, seen.diagnosis(&targets, Some(pid))))
        };
        asked.into_iter().map(of).collect()
    }

    fn look_again(self) -> io::Result<Seen> {
        let Examination {
            first,
            before,
            began,
            targets,
            asked: _,
            caller,
            probe,
        } = self;
        let between = began.elapsed();
        // What follows for the targets follows from those alone to whom their waits lead, and
        // from the children of these, which may have ended.
        let concerned = before.reached(&targets);
        // Who is in no circle at the first look is in none of those who have slept ever since.
        let mut may_be_stuck = !suspects_of(&before).is_disjoint(&concerned);
        let frozen = first.frozen();
        let judged = |mut second: world::World| {
            caller.disregard(&mut second);
            scan::tell_frozen(&mut second, &frozen);
            let graph = graph::Graph::of(&first, &second, &world::Births::new());
            let suspects = suspects_of(&graph);
            (second, graph, suspects)
        };
        let look_again = || -> io::Result<Option<world::World>> {
            let mut second = scan::look_again(&first, &concerned)?;
            if !first.is_partial() {
                return Ok(Some(second));
            }
            // They may wait for others by now.
            caller.disregard(&mut second);
            let disregard = |world: &mut world::World| caller.disregard(world);
            let graph = concerned::look(&mut second, &targets, disregard)?;
            Ok(graph.map(|_| second))
        };
        let (mut second, mut graph, mut suspects) = loop {
            let second = match may_be_stuck {
                // Whoever it is may have an end by now.
                true => None,
                false => look_again()?,
            };
            may_be_stuck = second.is_none();
            let (second, graph, suspects) = judged(match second {
                Some(second) => second,
                None => scan::look_since(&first)?,
            });
            // Of a circle that the first look did not show all have to be looked at.
            if may_be_stuck || suspects.is_disjoint(&graph.reached(&targets)) {
                break (second, graph, suspects);
            }
            may_be_stuck = true;
        };
        // A proof rests on no descriptor that was read before: who shares another's table, or is
        // about to fall asleep when its state is read, may have got one since.
        if may_be_stuck && !suspects.is_empty() {
            (second, graph, suspects) = judged(scan::look()?);
        }
        // Questions that cost much are asked about those alone that seem to be stuck.
        if may_be_stuck && !suspects.is_empty() {
            let keeps_creation = probe.is_some_and(|probe| probe.keeps_creation());
            let births = scan::look_closer(&mut second, &suspects, keeps_creation);
            caller.disregard(&mut second);
            graph = graph::Graph::of(&first, &second, &births);
        }
        Ok(Seen {
            first,
            second,
            graph,
            between,
        })
    }
}

/// What follows from one look, of which it is asked who is frozen of those to whom the waits of
/// `targets` lead.
fn graph_with_frozen(world: &mut world::World, targets: &BTreeSet<i32>) -> graph::Graph {
    let graph = graph::Graph::of_one(world);
    match scan::tell_frozen(world, &graph.reached(targets)) {
        true => graph::Graph::of_one(world),
        false => graph,
    }
}

/// Those that nobody outside of their circle could release, if what is doubtful is disregarded.
fn suspects_of(graph: &graph::Graph) -> BTreeSet<i32> {
    let stuck = knot::stuck(graph, knot::Doubts::Disregarded);
    knot::within_cycles(graph, &stuck)
}

fn missing(pids: &[i32]) -> io::Error {
    let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
    let which = format!("no such process: {}", pids.join(", "));
    io::Error::new(io::ErrorKind::NotFound, which)
}

fn these_processes(world: &world::World, pids: &[i32]) -> io::Result<BTreeSet<i32>> {
    let asked: BTreeSet<i32> = pids.iter().copied().collect();
    let is_missing = |pid: &i32| !world.processes.contains_key(pid);
    let absent: Vec<i32> = asked.iter().copied().filter(is_missing).collect();
    if !absent.is_empty() {
        return Err(missing(&absent));
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

/// The example of the README, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
