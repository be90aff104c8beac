//! Who was invited: what wakes a receiver that sleeps on its descriptor.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::fork::Kept;
use crate::sys::ready::{On, ReadySet};
use crate::sys::shared;
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// A link to each process that was invited, and one descriptor for all.
#[derive(Debug)]
pub(super) struct Guests {
    set: ReadySet,
    links: BTreeMap<u32, Kept>,
    /// To make the descriptor readable without anybody's help.
    wake: Wake,
}

/// What stands for `wake` in the set.
const OURSELVES: u64 = u64::MAX;

impl Guests {
    pub(super) fn new() -> io::Result<Guests> {
        let (set, wake) = (ReadySet::new()?, Wake::new()?);
        set.add(wake.as_fd(), OURSELVES, On::Read)?;
        Ok(Guests {
            set,
            links: BTreeMap::new(),
            wake,
        })
    }

    /// One more, with this number: its end of the link.
    pub(super) fn add(&mut self, number: u32) -> io::Result<OwnedFd> {
        let (ours, theirs) = shared::link()?;
        self.set.add(ours.as_fd(), number.into(), On::Read)?;
        self.links.insert(number, Kept::new(ours));
        Ok(theirs)
    }

    /// Whether nobody is there who could send.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub(super) fn ring_ourselves(&self) {
        self.wake.ring();
    }

    /// Sleeps until somebody has rung or is gone; the numbers of those who are.
    pub(super) fn wait(&mut self, deadline: Deadline) -> io::Result<Vec<u32>> {
        let mut keys = Vec::new();
        self.set.wait(&mut keys, deadline)?;
        let mut gone = Vec::new();
        for key in keys {
            let number = key as u32;
            let Some(link) = self.links.get(&number).filter(|_| key != OURSELVES) else {
                self.wake.silence();
                continue;
            };
            let link = link.get()?;
            if !shared::silence(link) {
                self.set.remove(link);
                self.links.remove(&number);
                gone.push(number);
            }
        }
        if self.is_empty() {
            // That nobody will send is something to be told of, for ever.
            self.wake.ring();
        }
        Ok(gone)
    }
}

impl AsFd for Guests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
