//! A fault at every instruction of an action.

use super::sys::steps::{Others, Path, Traced};
use super::{figure, scaled, stress, sys};

/// A fault that a stepped process suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Kill,
    Stop,
}

/// A point on the path of a stepped process.
#[derive(Debug)]
pub enum Point<'a> {
    /// Before the instruction with this index, on a path that another process has gone.
    At(&'a Path, usize),
    /// Before the instruction with this index, where each single step counts.
    AfterSteps(usize),
    /// Asleep in a system call.
    Asleep,
    /// After its work; receives its path, and how often it slept.
    End(Vec<u64>, u64),
}

impl Point<'_> {
    /// Runs a process up to this point. While it sleeps, `others` are asked to act for
    /// it. False if it has taken another path, and has done its work.
    pub fn reach(&mut self, traced: &mut Traced, others: &mut Others<'_>) -> bool {
        match self {
            Point::At(path, at) => traced.go_to(path, *at, others),
            Point::AfterSteps(steps) => traced.step_to(*steps, others),
            Point::Asleep => traced.fall_asleep(others),
            Point::End(path, sleeps) => {
                (*path, *sleeps) = traced.path(others);
                true
            }
        }
    }

    /// A short name for messages.
    pub fn name(&self) -> String {
        match self {
            Point::At(_, at) | Point::AfterSteps(at) => format!("at {at}"),
            Point::Asleep => "asleep".into(),
            Point::End(..) => "at its end".into(),
        }
    }
}

/// Points of each row in a usual run.
const USUAL: usize = 24;

/// Points that are done in time in any build. In a release build that is all of them.
const MOST: usize = 100_000;

/// One index out of each `stride`: the one whose instruction was met the fewest times
/// until then.
fn points(path: &Path, stride: usize) -> Vec<usize> {
    let all = 0..path.places.len();
    let some = all.clone().step_by(stride);
    some.filter_map(|from| (from..all.end.min(from + stride)).min_by_key(|at| path.passes[*at]))
        .collect()
}

/// `STEPS=1/4` selects every fourth point, from the second on, so that several
/// processors can share the work.
fn share() -> Option<(usize, usize)> {
    let share = std::env::var("STEPS").ok()?;
    let (share, shares) = share.split_once('/').expect("STEPS=0/4");
    let number = |text: &str| text.parse().expect("STEPS=0/4");
    Some((number(share), number(shares)))
}

/// Lets `act` run up to each of its instructions, and suffer each fault there. `act`
/// returns whether it got there.
pub fn everywhere(name: &str, mut act: impl FnMut(Fault, &mut Point<'_>) -> bool) {
    // On one processor no thread spins; spins would be most of the instructions.
    sys::have_one_processor();
    let mut end = Point::End(Vec::new(), 0);
    act(Fault::Stop, &mut end);
    let Point::End(path, sleeps) = end else {
        unreachable!()
    };
    let path = Path::of(path);
    let count = path.places.len();
    let stride = count.div_ceil(if stress() { MOST } else { USUAL });
    let mut points = points(&path, stride);
    if let Some((share, shares)) = share() {
        points = points.into_iter().skip(share).step_by(shares).collect();
    }
    for fault in [Fault::Kill, Fault::Stop] {
        let mut reached = 0;
        for at in points.iter().copied() {
            let got_there = act(fault, &mut Point::At(&path, at))
                // The process has taken another path: then step by step.
                || act(fault, &mut Point::AfterSteps(at));
            reached += usize::from(got_there);
            // The watchdog is for one run that hangs, not for many runs.
            sys::alarm(scaled(120, 600) as u32);
        }
        let asleep = sleeps > 0 && act(fault, &mut Point::Asleep);
        let asleep = if asleep { ", and asleep" } else { "" };
        figure(&format!(
            "{name:<34} {fault:?}: at {reached} of {count} instructions, one of {stride}{asleep}",
        ));
        // A path that depends on time differs in each run: one that was stepped through
        // on a busy machine may be longer than all others.
        assert!(reached > 0, "{name}");
    }
}
