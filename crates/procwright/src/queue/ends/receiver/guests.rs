//! Who may send: what wakes a receiver that sleeps on its descriptor.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::sys::fork::Kept;
use crate::sys::ready::{On, ReadySet};
use crate::sys::rendezvous::{self, Came, Introduced};
use crate::sys::shared;
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// A link to each process that was invited or has come, and one descriptor for all.
#[derive(Debug)]
pub(super) struct Guests {
    set: ReadySet,
    links: BTreeMap<u64, Link>,
    /// How many links there were.
    count: u64,
    /// Where those come who were not invited, or by a receiver that has died.
    listener: Option<Kept>,
    /// Others may come at any time: it has a name.
    is_named: bool,
    orphans: Orphans,
    /// To make the descriptor readable without anybody's help.
    wake: Arc<Wake>,
}

#[derive(Debug)]
struct Link {
    end: Kept,
    /// None as long as it has not said who it is.
    guest: Option<u32>,
}

/// Lanes whose senders have no link: they had one to a receiver that has died, and
/// have not come to this one yet, since they had nothing to send.
#[derive(Debug, Default)]
struct Orphans {
    are_there: bool,
    /// Their processes, by lane, to be told of their end.
    watched: BTreeMap<u32, Process>,
    /// There are some whose process cannot be seen.
    are_hidden: bool,
    /// The end of one was told of, and nobody has looked at its lane since.
    has_ended: bool,
}

/// What stands for `wake` in the set, and for the listener; behind this, lanes.
const OURSELVES: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
const ORPHANS: u64 = 1 << 63;

/// So many are let in at once. Those of another user come no further, but anybody may
/// come, and go on coming.
const AT_ONCE: usize = 64;

/// How often it is looked whether an orphan is there whose end nothing tells of.
const LOOKS: Duration = Duration::from_secs(1);

impl Guests {
    /// Of a queue whose guests are all invited.
    pub(super) fn new() -> io::Result<Guests> {
        let (set, wake) = (ReadySet::new()?, Arc::new(Wake::new()?));
        set.add(wake.as_fd(), OURSELVES, On::Read)?;
        Ok(Guests {
            set,
            links: BTreeMap::new(),
            count: 0,
            listener: None,
            is_named: false,
            orphans: Orphans::default(),
            wake,
        })
    }

    /// Of one to which others may come, there, and maybe at any time. Whether there
    /// are orphans is to be looked for yet.
    pub(super) fn listening(listener: OwnedFd, is_named: bool) -> io::Result<Guests> {
        let mut guests = Guests::new()?;
        guests.set.add(listener.as_fd(), LISTENER, On::Read)?;
        guests.listener = Some(Kept::new(listener));
        guests.is_named = is_named;
        guests.orphans.are_there = true;
        Ok(guests)
    }

    /// Whether there may be guests who were not invited.
    pub(super) fn listens(&self) -> bool {
        self.listener.is_some()
    }

    /// One more, with this number: its end of the link.
    pub(super) fn add(&mut self, number: u32) -> io::Result<OwnedFd> {
        let (ours, theirs) = shared::link()?;
        self.insert(ours, Some(number))?;
        Ok(theirs)
    }

    fn insert(&mut self, end: OwnedFd, guest: Option<u32>) -> io::Result<u64> {
        let key = self.count;
        self.set.add(end.as_fd(), key, On::Read)?;
        self.count += 1;
        let end = Kept::new(end);
        self.links.insert(key, Link { end, guest });
        Ok(key)
    }

    /// Whether nobody is there who could send, and nobody may come.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty() && !self.orphans.are_there && !self.is_named
    }

    pub(super) fn ring_ourselves(&self) {
        self.wake.ring();
    }

    /// What that rings, for others who do.
    pub(super) fn bell(&self) -> Weak<Wake> {
        Arc::downgrade(&self.wake)
    }

    /// Sleeps until somebody has come, has rung or is gone. The numbers of those who
    /// are gone are added to `gone`, also if something fails.
    pub(super) fn wait(&mut self, gone: &mut Vec<u32>, deadline: Deadline) -> io::Result<()> {
        let soon = match self.orphans.are_hidden {
            true => deadline.min(Deadline::at(Instant::now() + LOOKS)),
            false => deadline,
        };
        let mut keys = Vec::new();
        self.set.wait(&mut keys, soon)?;
        let mut has_come = false;
        for key in keys {
            match key {
                OURSELVES => self.wake.silence(),
                LISTENER => has_come = true,
                ORPHANS.. => {
                    self.forget((key - ORPHANS) as u32);
                    self.orphans.has_ended = true;
                }
                _ => gone.extend(self.hear(key)?),
            }
        }
        if has_come {
            self.let_in()?;
        }
        if self.is_empty() {
            // That nobody will send is something to be told of, for ever.
            self.wake.ring();
        }
        Ok(())
    }

    /// Who has rung at this link; or its number, if it is gone.
    fn hear(&mut self, key: u64) -> io::Result<Option<u32>> {
        let Some(link) = self.links.get_mut(&key) else {
            return Ok(None);
        };
        let end = link.end.get()?;
        let is_there = match link.guest {
            Some(_) => shared::silence(end),
            None => match rendezvous::introduced(end) {
                Introduced::As(number) => {
                    link.guest = Some(number);
                    shared::silence(end)
                }
                Introduced::NotYet => true,
                Introduced::Gone => false,
            },
        };
        if is_there {
            return Ok(None);
        }
        self.set.remove(end);
        let gone = self.links.remove(&key).and_then(|link| link.guest);
        // It may have come by another link meanwhile.
        let mut others = self.links.values().map(|link| link.guest);
        Ok(gone.filter(|_| !others.any(|guest| guest == gone)))
    }

    /// Lets in who has come; the descriptor tells of those who are left.
    fn let_in(&mut self) -> io::Result<()> {
        for _ in 0..AT_ONCE {
            let Some(listener) = &self.listener else {
                return Ok(());
            };
            match rendezvous::accept(listener.get()?)? {
                Came::In(link) => {
                    let key = self.insert(link, None)?;
                    // Who is gone already has rung nobody and has no lane that is known
                    // to be its own: that is an orphan's then.
                    self.hear(key)?;
                }
                Came::NotOurs => {}
                Came::Nobody => return Ok(()),
            }
        }
        Ok(())
    }

    /// The numbers of all who have a link.
    pub(super) fn linked(&self) -> BTreeSet<u32> {
        self.links.values().filter_map(|link| link.guest).collect()
    }

    /// Whether the end of an orphan will be told of.
    pub(super) fn watches(&self, lane: u32) -> bool {
        self.orphans.watched.contains_key(&lane)
    }

    /// From now on the descriptor tells of the end of this process, which has that
    /// lane.
    pub(super) fn watch(&mut self, lane: u32, process: Process) -> io::Result<()> {
        if let Some(pidfd) = process.pidfd() {
            self.set.add(pidfd, ORPHANS + u64::from(lane), On::Read)?;
            self.orphans.watched.insert(lane, process);
        }
        Ok(())
    }

    /// Whether the end of an orphan was told of: once.
    pub(super) fn has_lost_an_orphan(&mut self) -> bool {
        std::mem::take(&mut self.orphans.has_ended)
    }

    /// That lane is no orphan's any more.
    pub(super) fn forget(&mut self, lane: u32) {
        let process = self.orphans.watched.remove(&lane);
        if let Some(pidfd) = process.as_ref().and_then(Process::pidfd) {
            self.set.remove(pidfd);
        }
    }

    /// What was found by who has looked at all lanes.
    pub(super) fn found_orphans(&mut self, are_there: bool, are_hidden: bool) {
        self.orphans.are_there = are_there;
        self.orphans.are_hidden = are_hidden;
        if self.is_empty() {
            self.wake.ring();
        }
    }
}

impl AsFd for Guests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    fn listening(text: &str) -> (Guests, rendezvous::Name) {
        let mut name = rendezvous::Name::default();
        let text = format!("{text}-{}", std::process::id());
        name[..text.len()].copy_from_slice(text.as_bytes());
        let listener = rendezvous::listen(&name).unwrap();
        (Guests::listening(listener, false).unwrap(), name)
    }

    fn wait(guests: &mut Guests) {
        let now = Deadline::at(Instant::now());
        guests.wait(&mut Vec::new(), now).unwrap();
    }

    #[test]
    fn who_goes_on_coming_holds_nobody_up() {
        let (mut guests, name) = listening("pw-flood");
        let come = |_| rendezvous::connect(&name).unwrap();
        let all: Vec<_> = (0..AT_ONCE + 1).map(come).collect();
        wait(&mut guests);
        assert_eq!(guests.links.len(), AT_ONCE);
        // The last one is told of still.
        wait(&mut guests);
        assert_eq!(guests.links.len(), all.len());
    }

    #[test]
    fn the_end_of_an_orphan_is_told_of_once() {
        let (mut guests, _) = listening("pw-orphan");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::open(child.id().cast_signed()).unwrap();
        guests.watch(3, process).unwrap();
        assert!(!guests.has_lost_an_orphan());
        child.wait().unwrap();
        wait(&mut guests);
        assert!(!guests.watches(3));
        assert!(guests.has_lost_an_orphan());
        assert!(!guests.has_lost_an_orphan());
    }
}
