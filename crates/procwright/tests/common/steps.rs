//! A fault at every instruction of something.

use super::sys::steps::{Others, Path, Traced};
use super::{figure, scaled, stress, sys};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill,
    Stop,
}

/// Where on its path somebody is met.
#[derive(Debug)]
pub(crate) enum Point<'a> {
    /// Before the instruction with this index, of a path that another has gone.
    At(&'a Path, usize),
    /// The same, and every step is one.
    AfterSteps(usize),
    /// Asleep in a system call.
    Asleep,
    /// Where it has done its work; the path is wanted, and how often it slept.
    End(Vec<u64>, u64),
}

impl Point<'_> {
    /// Lets somebody go there. While it sleeps, `others` are asked to do something
    /// for it. False if it has gone another way, and has done its work.
    pub(crate) fn reach(&mut self, traced: &mut Traced, others: &mut Others<'_>) -> bool {
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

    /// In short, for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Point::At(_, at) | Point::AfterSteps(at) => format!("at {at}"),
            Point::Asleep => "asleep".into(),
            Point::End(..) => "at its end".into(),
        }
    }
}

/// So many points of each row in a usual run.
const USUAL: usize = 24;

/// As many as end in time, whatever the build. In a release build that is each of
/// them.
const MOST: usize = 100_000;

/// One index of each so many: that whose instruction was met the fewest times until
/// then.
fn points(path: &Path, stride: usize) -> Vec<usize> {
    let all = 0..path.places.len();
    let some = all.clone().step_by(stride);
    some.filter_map(|from| (from..all.end.min(from + stride)).min_by_key(|at| path.passes[*at]))
        .collect()
}

/// `STEPS=1/4` leaves each fourth of the points, from the second on: for several
/// processors.
fn share() -> Option<(usize, usize)> {
    let share = std::env::var("STEPS").ok()?;
    let (share, shares) = share.split_once('/').expect("STEPS=0/4");
    let number = |text: &str| text.parse().expect("STEPS=0/4");
    Some((number(share), number(shares)))
}

/// Lets `act` do something up to each of its instructions, and suffer each fault
/// there. It says whether it got there.
pub(crate) fn everywhere(name: &str, mut act: impl FnMut(Fault, &mut Point<'_>) -> bool) {
    // Then nobody spins, which would be most of the instructions.
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
                // It has gone another way: then step by step.
                || act(fault, &mut Point::AfterSteps(at));
            reached += usize::from(got_there);
            // The watchdog is for one that hangs, not for many.
            sys::alarm(scaled(120, 600) as u32);
        }
        let asleep = sleeps > 0 && act(fault, &mut Point::Asleep);
        let asleep = if asleep { ", and asleep" } else { "" };
        figure(&format!(
            "{name:<34} {fault:?}: at {reached} of {count} instructions, one of {stride}{asleep}",
        ));
        // What goes by the time goes another way each time: a path that was stepped
        // through on a busy machine may be longer than all others.
        assert!(reached > 0, "{name}");
    }
}
