//! Descriptors and variables by which a program finds this process.

use std::os::fd::{AsRawFd, RawFd};

use super::unstarted::Unstarted;
use crate::error::{SpawnError, Step};
use crate::spec::Spec;
use procwright_liveness::inherited::Inheritance;
use procwright_os::fd;
use procwright_os::spawn::PidVariable;

/// The first number that such a descriptor gets. Scripts use those up to 9 by hand, and
/// shells those from 10 on for themselves.
const FIRST: RawFd = 20;

/// The inheritances of a program, and the numbers that their descriptors get there.
pub(super) struct Inheritances {
    all: Vec<Inheritance>,
    numbers: Vec<RawFd>,
}

impl Inheritances {
    pub(super) fn new(spec: &Spec, channel: Option<Inheritance>) -> Inheritances {
        let liveness = spec.liveness.then(procwright_liveness::inheritance);
        let mut all: Vec<_> = liveness.into_iter().chain(channel).collect();
        let is_free = |number: &RawFd| spec.pass_fds.iter().all(|(_, taken)| taken != number);
        // A low limit leaves the numbers that scripts use, or none at all.
        let candidates = (FIRST..fd::number_limit()).chain(3..FIRST.min(fd::number_limit()));
        let free: Vec<_> = candidates
            .filter(is_free)
            .take(spec.most_inherited_fds())
            .collect();
        let count = |all: &[Inheritance]| all.iter().map(|one| one.files.len()).sum::<usize>();
        if free.len() < count(&all) {
            all.iter_mut()
                .filter(|one| !one.needs_files)
                .for_each(|one| one.files.clear());
        }
        // The program's own `dup2` fails where even those do not suffice.
        let beyond = fd::number_limit()..;
        let numbers = free.into_iter().chain(beyond).take(count(&all)).collect();
        Inheritances { all, numbers }
    }

    /// Our descriptor and the number it gets in the program, of each.
    pub(super) fn placements(&self) -> impl Iterator<Item = (RawFd, RawFd)> + '_ {
        let files = self.all.iter().flat_map(|one| &one.files);
        files
            .zip(&self.numbers)
            .map(|(file, number)| (file.as_raw_fd(), *number))
    }

    /// The values of the variables.
    pub(super) fn environment(&self) -> Result<Vec<PidVariable>, Unstarted> {
        let mut numbers = &self.numbers[..];
        let mut told = Vec::with_capacity(self.all.len());
        for one in &self.all {
            let (own, rest) = numbers.split_at(one.files.len());
            numbers = rest;
            let text = one.text(own);
            let text = text.map_err(|error| SpawnError::new(Step::Dup, "", error))?;
            told.push(PidVariable::new(&format!("{}={text} ", one.variable)));
        }
        Ok(told)
    }
}
