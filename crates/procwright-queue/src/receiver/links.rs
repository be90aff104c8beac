//! Links to the processes that may send, and one descriptor for all: what wakes a receiver
//! that sleeps on its descriptor.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use procwright_os::fork::CloseOnFork;
use procwright_os::ready::{Interest, ReadySet};
use procwright_os::shared_memory;
use procwright_os::time::Deadline;
use procwright_os::unix_socket::{self, Accepted, Introduced, PrivateListener};
use procwright_os::wake::Wake;
use procwright_process::Process;

/// A link to each process that was invited or has connected, and one descriptor for all.
#[doc(alias = "epoll")]
#[derive(Debug)]
pub(super) struct SenderLinks {
    set: ReadySet,
    links: BTreeMap<u64, SenderLink>,
    /// Number of links that there ever were.
    count: u64,
    /// The socket for processes that were not invited, or were invited by a receiver that
    /// has died.
    listener: Option<CloseOnFork>,
    /// The one of these where other users cannot come, if there is one.
    private: Option<PrivateSocket>,
    /// True if others may connect at any time, since the queue has a name.
    is_named: bool,
    orphans: Orphans,
    /// Makes the descriptor readable without another process.
    wake: Arc<Wake>,
}

#[derive(Debug)]
struct PrivateSocket {
    listener: CloseOnFork,
    /// The descriptor whose number others know.
    door: CloseOnFork,
}

#[derive(Debug)]
struct SenderLink {
    end: CloseOnFork,
    /// Number of the process; none as long as it has not said it.
    guest: Option<u32>,
}

/// Lanes whose senders have no link: they had one to a receiver that has died, and have not
/// connected to this one yet, since they had nothing to send.
#[derive(Debug, Default)]
struct Orphans {
    are_there: bool,
    /// Processes of these senders, by lane, whose ends the descriptor tells.
    watched: BTreeMap<u32, Process>,
    /// True if there are orphans whose process cannot be seen.
    are_hidden: bool,
    /// True if an orphan has ended since the locks of the lanes were looked at.
    has_ended: bool,
}

/// Keys in the set: `wake`, the listeners, and above `ORPHAN_KEYS` the lanes of orphans. All
/// others are numbers of links.
const WAKE_KEY: u64 = u64::MAX;
const LISTENER_KEY: u64 = u64::MAX - 1;
const PRIVATE_KEY: u64 = u64::MAX - 2;
const ORPHAN_KEYS: u64 = 1 << 63;

/// Number of processes that are accepted at once. Those of another user are turned away,
/// but any process may connect, and go on doing so.
const MAX_ACCEPTS: usize = 64;

/// Pause between two looks at the locks of orphans whose process cannot be seen.
const ORPHAN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl SenderLinks {
    /// Links of a queue whose senders are all invited.
    pub(super) fn new() -> io::Result<SenderLinks> {
        let (set, wake) = (ReadySet::new()?, Arc::new(Wake::new()?));
        set.add(wake.as_fd(), WAKE_KEY, Interest::Read)?;
        Ok(SenderLinks {
            set,
            links: BTreeMap::new(),
            count: 0,
            listener: None,
            private: None,
            is_named: false,
            orphans: Orphans::default(),
            wake,
        })
    }

    /// Links of a queue to which others may connect, and with a name at any time. Whether
    /// there are orphans is not known yet.
    pub(super) fn listening(
        listener: OwnedFd,
        private: Option<PrivateListener>,
        is_named: bool,
    ) -> io::Result<SenderLinks> {
        let mut links = SenderLinks::new()?;
        if let Some(PrivateListener { listener, door }) = private {
            links
                .set
                .add(listener.as_fd(), PRIVATE_KEY, Interest::Read)?;
            links.private = Some(PrivateSocket {
                listener: CloseOnFork::new(listener),
                door: CloseOnFork::new(door),
            });
        }
        links
            .set
            .add(listener.as_fd(), LISTENER_KEY, Interest::Read)?;
        links.listener = Some(CloseOnFork::new(listener));
        links.is_named = is_named;
        links.orphans.are_there = true;
        Ok(links)
    }

    /// Number of the descriptor that leads to the private socket.
    pub(super) fn door(&self) -> Option<u32> {
        let door = self.private.as_ref()?.door.get().ok()?;
        Some(door.as_raw_fd().cast_unsigned())
    }

    /// Returns whether there may be senders that were not invited.
    pub(super) fn listens(&self) -> bool {
        self.listener.is_some()
    }

    /// Adds a link to the process with this number, and returns the other end.
    pub(super) fn add(&mut self, number: u32) -> io::Result<OwnedFd> {
        let (ours, theirs) = shared_memory::socket_pair()?;
        self.insert(ours, Some(number))?;
        Ok(theirs)
    }

    fn insert(&mut self, end: OwnedFd, guest: Option<u32>) -> io::Result<u64> {
        let key = self.count;
        self.set.add(end.as_fd(), key, Interest::Read)?;
        self.count += 1;
        let end = CloseOnFork::new(end);
        self.links.insert(key, SenderLink { end, guest });
        Ok(key)
    }

    /// Returns whether no process is left that could send, and none may connect.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty() && !self.orphans.are_there && !self.is_named
    }

    pub(super) fn wake_self(&self) {
        self.wake.ring();
    }

    /// Handle that makes the descriptor readable from any thread.
    pub(super) fn wake_handle(&self) -> Weak<Wake> {
        Arc::downgrade(&self.wake)
    }

    /// Sleeps until a process has connected, has sent a wake-up, or is gone. The numbers of
    /// those that are gone are added to `gone`, also if something fails.
    pub(super) fn wait(&mut self, gone: &mut Vec<u32>, deadline: Deadline) -> io::Result<()> {
        let soon = match self.orphans.are_hidden {
            true => deadline.min(Deadline::at(Instant::now() + ORPHAN_CHECK_INTERVAL)),
            false => deadline,
        };
        let mut keys = Vec::new();
        self.set.wait(&mut keys, soon)?;
        let mut has_come = false;
        for key in keys {
            match key {
                WAKE_KEY => self.wake.silence(),
                LISTENER_KEY | PRIVATE_KEY => has_come = true,
                ORPHAN_KEYS.. => {
                    self.unwatch((key - ORPHAN_KEYS) as u32);
                    self.orphans.has_ended = true;
                }
                _ => gone.extend(self.read_link(key)?),
            }
        }
        if has_come {
            self.accept_pending()?;
        }
        if self.is_empty() {
            // The descriptor stays readable: a caller is to learn whenever it looks that no
            // process will send.
            self.wake.ring();
        }
        Ok(())
    }

    /// Reads the wake-ups of a link. Returns the number of its process if that is gone.
    fn read_link(&mut self, key: u64) -> io::Result<Option<u32>> {
        let Some(link) = self.links.get_mut(&key) else {
            return Ok(None);
        };
        let end = link.end.get()?;
        let is_there = match link.guest {
            Some(_) => shared_memory::silence(end),
            None => match unix_socket::introduced(end) {
                Introduced::As(number) => {
                    link.guest = Some(number);
                    shared_memory::silence(end)
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
        // The process may have another link by now.
        let mut others = self.links.values().map(|link| link.guest);
        Ok(gone.filter(|_| !others.any(|guest| guest == gone)))
    }

    /// Accepts processes that have connected; the descriptor stays readable if there are
    /// more.
    fn accept_pending(&mut self) -> io::Result<()> {
        // Each has a number of its own: who crowds the one holds up nobody at the other.
        self.accept_at(|links| links.private.as_ref().map(|private| &private.listener))?;
        self.accept_at(|links| links.listener.as_ref())
    }

    fn accept_at(
        &mut self,
        listener: impl Fn(&SenderLinks) -> Option<&CloseOnFork>,
    ) -> io::Result<()> {
        for _ in 0..MAX_ACCEPTS {
            let Some(listener) = listener(self) else {
                return Ok(());
            };
            match unix_socket::accept(listener.get()?)? {
                Accepted::Peer(link) => {
                    let key = self.insert(link, None)?;
                    // A process that is gone already has no number here, so its lane is
                    // found as an orphan's.
                    self.read_link(key)?;
                }
                Accepted::OtherUser => {}
                Accepted::Nothing => return Ok(()),
            }
        }
        Ok(())
    }

    /// The numbers of all processes that have a link.
    pub(super) fn linked(&self) -> BTreeSet<u32> {
        self.links.values().filter_map(|link| link.guest).collect()
    }

    /// Returns whether the descriptor tells the end of the orphan that has this lane.
    pub(super) fn watches(&self, lane: u32) -> bool {
        self.orphans.watched.contains_key(&lane)
    }

    /// Watches the process that has that lane: the descriptor tells its end.
    pub(super) fn watch(&mut self, lane: u32, process: Process) -> io::Result<()> {
        if let Some(pidfd) = process.pidfd() {
            self.set
                .add(pidfd, ORPHAN_KEYS + u64::from(lane), Interest::Read)?;
            self.orphans.watched.insert(lane, process);
        }
        Ok(())
    }

    /// Returns whether an orphan has ended since the last call.
    pub(super) fn take_orphan_ended(&mut self) -> bool {
        std::mem::take(&mut self.orphans.has_ended)
    }

    /// Stops watching the process that had that lane.
    pub(super) fn unwatch(&mut self, lane: u32) {
        let process = self.orphans.watched.remove(&lane);
        if let Some(pidfd) = process.as_ref().and_then(Process::pidfd) {
            self.set.remove(pidfd);
        }
    }

    /// Sets what a look at all lanes has found.
    pub(super) fn set_orphans(&mut self, are_there: bool, are_hidden: bool) {
        self.orphans.are_there = are_there;
        self.orphans.are_hidden = are_hidden;
        if self.is_empty() {
            self.wake.ring();
        }
    }
}

impl AsFd for SenderLinks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    fn listening(text: &str) -> (SenderLinks, unix_socket::SocketName) {
        let mut name = unix_socket::SocketName::default();
        let text = format!("{text}-{}", std::process::id());
        name[..text.len()].copy_from_slice(text.as_bytes());
        let listener = unix_socket::listen_abstract(&name).unwrap();
        (SenderLinks::listening(listener, None, false).unwrap(), name)
    }

    fn wait(links: &mut SenderLinks) {
        let now = Deadline::at(Instant::now());
        links.wait(&mut Vec::new(), now).unwrap();
    }

    #[test]
    fn a_flood_of_connections_does_not_hold_up_the_receiver() {
        let (mut links, name) = listening("pw-flood");
        let come = |_| unix_socket::connect_abstract(&name).unwrap();
        let all: Vec<_> = (0..MAX_ACCEPTS + 1).map(come).collect();
        wait(&mut links);
        assert_eq!(links.links.len(), MAX_ACCEPTS);
        // The descriptor still tells the last one.
        wait(&mut links);
        assert_eq!(links.links.len(), all.len());
    }

    #[test]
    fn the_end_of_an_orphan_is_told_once() {
        let (mut links, _) = listening("pw-orphan");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::open(child.id().cast_signed()).unwrap();
        links.watch(3, process).unwrap();
        assert!(!links.take_orphan_ended());
        child.wait().unwrap();
        wait(&mut links);
        assert!(!links.watches(3));
        assert!(links.take_orphan_ended());
        assert!(!links.take_orphan_ended());
    }
}
