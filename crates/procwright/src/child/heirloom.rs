//! Where a program finds what it gets to find this process by.

use std::os::fd::{AsRawFd, RawFd};

use super::Unstarted;
use crate::error::{SpawnError, Step};
use crate::heirloom::Heirloom;
use crate::spec::Spec;
use crate::sys::fd;
use crate::sys::spawn::Signed;
use crate::{liveness, queue};

/// The first number. Scripts use those up to 9 by hand, and shells those from 10
/// on for themselves.
const FIRST: RawFd = 20;

/// The most descriptors that what `spec` wants takes.
pub(super) fn most(spec: &Spec) -> usize {
    let channel = match spec.channel {
        Some(_) => queue::MOST_FILES,
        None => 0,
    };
    channel + if spec.liveness { 2 } else { 0 }
}

/// The variables that say it: the program shall not get ours, if we were started so.
pub(super) fn variables(spec: &Spec) -> Vec<&'static str> {
    let liveness = spec.liveness.then_some(liveness::VARIABLE);
    let channel = spec.channel.map(|_| queue::VARIABLE);
    liveness.into_iter().chain(channel).collect()
}

/// All of it, and the numbers that the descriptors get.
pub(super) struct Heirlooms {
    all: Vec<Heirloom>,
    numbers: Vec<RawFd>,
}

impl Heirlooms {
    pub(super) fn new(spec: &Spec, channel: Option<Heirloom>) -> Heirlooms {
        let liveness = spec.liveness.then(liveness::heirloom);
        let mut all: Vec<_> = liveness.into_iter().chain(channel).collect();
        let is_free = |number: &RawFd| spec.extra_fds.iter().all(|(_, taken)| taken != number);
        // A low limit leaves the numbers that scripts use, or none at all.
        let candidates = (FIRST..fd::limit()).chain(3..FIRST.min(fd::limit()));
        let free: Vec<_> = candidates.filter(is_free).take(most(spec)).collect();
        let count = |all: &[Heirloom]| all.iter().map(|one| one.files.len()).sum::<usize>();
        if free.len() < count(&all) {
            all.iter_mut()
                .filter(|one| !one.needs_files)
                .for_each(|one| one.files.clear());
        }
        // Where even that is too much the program's own `dup2` will say so.
        let beyond = fd::limit()..;
        let numbers = free.into_iter().chain(beyond).take(count(&all)).collect();
        Heirlooms { all, numbers }
    }

    /// Which of our descriptors becomes which of the program's.
    pub(super) fn placements(&self) -> impl Iterator<Item = (RawFd, RawFd)> + '_ {
        let files = self.all.iter().flat_map(|one| &one.files);
        files
            .zip(&self.numbers)
            .map(|(file, number)| (file.as_raw_fd(), *number))
    }

    /// What tells it.
    pub(super) fn told(&self) -> Result<Vec<Signed>, Unstarted> {
        let mut numbers = &self.numbers[..];
        let mut told = Vec::with_capacity(self.all.len());
        for one in &self.all {
            let (own, rest) = numbers.split_at(one.files.len());
            numbers = rest;
            let text = one.text(own);
            let text = text.map_err(|error| SpawnError::new(Step::Dup, "", error))?;
            told.push(Signed::new(&format!("{}={text} ", one.variable)));
        }
        Ok(told)
    }
}
