//! What a program gets that is to watch this process.

use std::os::fd::{AsRawFd, RawFd};

use crate::liveness::{Keepsake, VARIABLE};
use crate::spec::Spec;
use crate::sys::fd;
use crate::sys::spawn::Signed;

/// The most descriptors that it takes.
pub(super) const MOST: usize = 2;

/// The first number. Scripts use those up to 9 by hand, and shells those from 10
/// on for themselves.
const FIRST: RawFd = 20;

/// The descriptors, the numbers that they get, and the rest.
pub(super) struct Heirloom {
    keepsake: Keepsake,
    numbers: Vec<RawFd>,
}

impl Heirloom {
    pub(super) fn new(spec: &Spec) -> Heirloom {
        let keepsake = Keepsake::of_ourselves();
        let count = keepsake.files().len();
        let is_free = |number: &RawFd| spec.extra_fds.iter().all(|(_, taken)| taken != number);
        // A low limit leaves the numbers that scripts use, or none at all.
        let candidates = (FIRST..fd::limit()).chain(3..FIRST.min(fd::limit()));
        let numbers: Vec<_> = candidates.filter(is_free).take(count).collect();
        match numbers.len() == count {
            true => Heirloom { keepsake, numbers },
            false => Heirloom {
                keepsake: keepsake.without_files(),
                numbers: Vec::new(),
            },
        }
    }

    /// Which of our descriptors becomes which of the program's.
    pub(super) fn placements(&self) -> impl Iterator<Item = (RawFd, RawFd)> + '_ {
        let files = self.keepsake.files().into_iter();
        files
            .zip(&self.numbers)
            .map(|(file, number)| (file.as_raw_fd(), *number))
    }

    /// What tells it.
    pub(super) fn variable(&self) -> Signed {
        let text = self.keepsake.text(&self.numbers);
        Signed::new(&format!("{VARIABLE}={text} "))
    }
}
