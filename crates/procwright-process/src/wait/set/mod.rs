//! [`WaitSet`]: many waits behind one descriptor.

mod member_watch;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use super::fallback::EndedKeys;
use super::{AwaitSource, Event, Mechanism, Waitable};
use member_watch::MemberWatch;
use procwright_os::ready::{BATCH, Interest, ReadySet};
use procwright_os::time::{Deadline, Timeout};

/// Things to wait for: any of them, all, or the first few.
///
/// Owns its members until they have ended; a process can be put in as a clone.
/// Waiting sleeps: it costs nothing until something ends, however many are in
/// the set, and then a system call per batch. One member costs about 2 µs to
/// put in, and no descriptor beyond its own.
///
/// ```
/// use procwright_process::wait::{Event, WaitSet, Want};
/// use procwright_process::Process;
///
/// let mut children = Vec::new();
/// let mut set = WaitSet::new()?;
/// for _ in 0..3 {
///     let child = std::process::Command::new("true").spawn()?;
///     set.add(Process::of_child(&child)?, Event::Exited)?;
///     children.push(child);
/// }
/// let waited = set.wait(Want::All, std::time::Duration::from_secs(60))?;
/// assert_eq!(waited.ended.len(), 3);
/// for (_, process) in waited.ended {
///     assert!(process.exit().unwrap().success());
/// }
/// for child in &mut children {
///     child.wait()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Event loops
/// [`AsFd`] gives a descriptor that is readable while [`wait`](WaitSet::wait)
/// would return at once. Hand it to `tokio::io::unix::AsyncFd` or
/// `async_io::Async`, and when it is readable call `wait` with a timeout of zero.
///
/// # Fork
/// A set belongs to the process that made it. In a fork every call fails, and
/// dropping it does not disturb the parent's.
#[doc(alias = "wait_procs")]
#[doc(alias = "epoll")]
#[doc(alias = "kqueue")]
pub struct WaitSet<T> {
    ready: ReadySet,
    members: BTreeMap<u64, SetMember<T>>,
    next_key: u64,
    /// Members that have ended and were not handed out yet.
    over: Vec<u64>,
    /// Keys reported by other threads; made when first needed.
    ended: Option<Arc<EndedKeys>>,
    cancel: Option<Box<dyn AsFd + Send + Sync>>,
    process: u32,
}

struct SetMember<T> {
    item: T,
    event: Event,
    watching: MemberWatch,
}

const CANCEL: u64 = u64::MAX;
const ENDED: u64 = u64::MAX - 1;

/// The name of a member in its set. It is never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u64);

/// The number of members that have to end for a wait to be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Want {
    /// One. Others that have ended by then are handed out with it.
    Any,
    /// Every member.
    All,
    /// This many, or every member if there are fewer. No more are handed out; others
    /// that have ended stay in the set and are first the next time.
    First(usize),
}

/// The reason why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// As many members have ended as were wanted.
    Satisfied,
    /// The time was up.
    TimedOut,
    /// The wait was cancelled.
    Cancelled,
}

/// The result of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited<T> {
    /// The members that have ended, in the order in which that was learned. They are out
    /// of the set. After a timeout there are fewer than were wanted.
    pub ended: Vec<(Key, T)>,
    /// The reason why it is over.
    pub outcome: Outcome,
}

impl<T: Waitable> WaitSet<T> {
    /// An empty set. Takes one descriptor.
    ///
    /// # Errors
    /// When none is left; `Unsupported` where there is neither epoll nor kqueue.
    pub fn new() -> io::Result<WaitSet<T>> {
        Ok(WaitSet {
            ready: ReadySet::new()?,
            members: BTreeMap::new(),
            next_key: 0,
            over: Vec::new(),
            ended: None,
            cancel: None,
            process: std::process::id(),
        })
    }

    /// Lets waits end early: when this descriptor is readable, as that of a
    /// [`Cancel`](crate::Cancel) is once it was cancelled. Takes the place of an
    /// earlier one.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn cancel_on(&mut self, cancel: impl AsFd + Send + Sync + 'static) -> io::Result<()> {
        self.check()?;
        // A descriptor can be in an epoll set once, and this one may be there as a
        // member or as the earlier cancel.
        let cancel: Box<dyn AsFd + Send + Sync> =
            match self.ready.add(cancel.as_fd(), CANCEL, Interest::Read) {
                Ok(()) => Box::new(cancel),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    let twin = cancel.as_fd().try_clone_to_owned()?;
                    self.ready.add(twin.as_fd(), CANCEL, Interest::Read)?;
                    Box::new(twin)
                }
                Err(e) => return Err(e),
            };
        if let Some(before) = self.cancel.replace(cancel) {
            self.ready.remove(before.as_fd());
        }
        Ok(())
    }

    /// Puts `item` in; it may have ended before. The same process may be in a
    /// set more than once.
    ///
    /// # Errors
    /// If the system refuses: no memory, too many watches, a descriptor that
    /// cannot be polled. If `item` says that it [cannot be
    /// awaited](super::Awaits::impossible).
    pub fn add(&mut self, mut item: T, event: Event) -> io::Result<Key> {
        self.check()?;
        let key = self.next_key;
        let watching = match item.awaits().0 {
            AwaitSource::Readable(fd) => {
                self.watch(fd, key, Interest::Read, Mechanism::Descriptor)?
            }
            AwaitSource::Asked(_) => match item.has_come() {
                true => MemberWatch::Over,
                false => self.watch_asked(&item, key)?,
            },
            AwaitSource::Process(process) => self.watch_process(process, key, event)?,
            AwaitSource::Nothing(why) => return Err(why.error()),
        };
        if matches!(watching, MemberWatch::Over) {
            // Reported as if it ended now, so that the set becomes ready.
            self.ended()?.push(key);
        }
        self.next_key += 1;
        let member = SetMember {
            item,
            event,
            watching,
        };
        self.members.insert(key, member);
        Ok(Key(key))
    }

    /// Takes a member out that has not been handed out yet.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.take(key.0)
    }

    fn take(&mut self, key: u64) -> Option<T> {
        let member = self.members.remove(&key)?;
        self.unwatch(&member, key);
        if matches!(member.watching, MemberWatch::Over) {
            // Forgotten, or it would satisfy a wait that it is no part of any more.
            self.over.retain(|&over| over != key);
        }
        Some(member.item)
    }

    /// Waits until as many have ended as wanted, at most for `timeout`. What has
    /// ended before the call counts, also with a timeout of zero. A set without
    /// members has nothing to wait for.
    ///
    /// # Errors
    /// `Unsupported` in a fork of the process that made the set.
    pub fn wait(&mut self, want: Want, timeout: impl Into<Timeout>) -> io::Result<Waited<T>> {
        let timeout = timeout.into();
        self.wait_until(want, timeout.starting(Instant::now()))
    }

    /// Waits until a point in time, for a wait that is taken up again.
    ///
    /// # Errors
    /// As [`wait`](WaitSet::wait).
    pub fn wait_until(&mut self, want: Want, deadline: Deadline) -> io::Result<Waited<T>> {
        self.check()?;
        let need = match want {
            Want::Any => self.members.len().min(1),
            Want::All => self.members.len(),
            Want::First(k) => self.members.len().min(k),
        };
        // What is ready beyond that is not taken, and so keeps the set ready.
        let most = match want {
            Want::First(_) => need,
            Want::Any | Want::All => usize::MAX,
        };
        let mut keys = Vec::new();
        let outcome = loop {
            // Looked even when enough have ended, for others that have ended as well.
            let enough = self.over.len() >= need;
            if enough && self.over.len() >= most {
                break Outcome::Satisfied;
            }
            let until = match enough {
                true => Deadline::at(Instant::now()),
                false => deadline,
            };
            keys.clear();
            self.ready.wait(&mut keys, until)?;
            let mut cancelled = false;
            for (i, &key) in keys.iter().enumerate() {
                let noted = match key {
                    CANCEL => {
                        cancelled = true;
                        Ok(())
                    }
                    ENDED => self.take_ended(most),
                    key if self.over.len() < most => self.member_ended(key),
                    key => self.put_off(key),
                };
                if let Err(error) = noted {
                    // Kept for the next wait, where the system tells only once.
                    for &later in &keys[i + 1..] {
                        let _ = self.put_off(later);
                    }
                    return Err(error);
                }
            }
            if self.over.len() >= need && keys.len() < BATCH {
                break Outcome::Satisfied;
            }
            if cancelled {
                break Outcome::Cancelled;
            }
            if keys.is_empty() && !enough && deadline.reached(Instant::now()) {
                break Outcome::TimedOut;
            }
        };
        let mut ended = Vec::with_capacity(self.over.len());
        for key in std::mem::take(&mut self.over) {
            if let Some(member) = self.members.remove(&key) {
                ended.push((Key(key), member.item));
            }
        }
        Ok(Waited { ended, outcome })
    }

    /// The next member that ends; none if the time is up, the wait cancelled or the set
    /// empty.
    ///
    /// # Errors
    /// As [`wait`](WaitSet::wait).
    pub fn next(&mut self, timeout: impl Into<Timeout>) -> io::Result<Option<(Key, T)>> {
        Ok(self.wait(Want::First(1), timeout)?.ended.pop())
    }

    /// Leaves a member that has ended for the next wait. Its descriptor keeps the set
    /// ready; a kqueue tells of a process only once, so its key is kept.
    fn put_off(&mut self, key: u64) -> io::Result<()> {
        match self.members.get(&key).map(|member| &member.watching) {
            Some(MemberWatch::Polled(Mechanism::Kqueue, _)) => {
                self.ended()?.push(key);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes up keys that other threads have reported.
    fn take_ended(&mut self, most: usize) -> io::Result<()> {
        let Some(ended) = self.ended.clone() else {
            return Ok(());
        };
        let keys = ended.take(most.saturating_sub(self.over.len()));
        for (i, &key) in keys.iter().enumerate() {
            if let Err(error) = self.member_ended(key) {
                // Each key is reported once: the rest is kept for the next wait.
                keys[i + 1..].iter().for_each(|&later| ended.push(later));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Takes up that a member has ended, or may have.
    fn member_ended(&mut self, key: u64) -> io::Result<()> {
        let Some(mut member) = self.members.remove(&key) else {
            // Taken out after its key was reported.
            return Ok(());
        };
        let is_asked = matches!(member.item.awaits().0, AwaitSource::Asked(_));
        // A member that had come before it went in is not asked again.
        let is_over = matches!(member.watching, MemberWatch::Over);
        if is_asked && !is_over && !member.item.has_come() {
            self.members.insert(key, member);
            return Ok(());
        }
        let next = self.next_step(&member, key);
        if next.is_ok() {
            // A member that is over would keep the set ready.
            self.unwatch(&member, key);
        }
        let result = match next {
            Ok(Some(next)) => {
                member.watching = next;
                Ok(())
            }
            Ok(None) => {
                match &member.watching {
                    MemberWatch::Polled(mechanism, _) => mechanism.served(),
                    MemberWatch::Fallback(job) => job.mechanism().served(),
                    MemberWatch::ExitThenReap(_) | MemberWatch::Over => {}
                }
                member.watching = MemberWatch::Over;
                self.over.push(key);
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let (Err(_), MemberWatch::Fallback(_), Some(ended)) =
            (&result, &member.watching, &self.ended)
        {
            // Reported again, so that the next wait tries again.
            ended.push(key);
        }
        self.members.insert(key, member);
        result
    }

    fn check(&self) -> io::Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this WaitSet was made before a fork and is its parent's; make a new one",
        ))
    }
}

impl<T> WaitSet<T> {
    /// The number of members: those that were put in and neither handed out nor taken
    /// out.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The member of this key.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.members.get(&key.0).map(|member| &member.item)
    }

    /// The members, in the order in which they were put in.
    pub fn iter(&self) -> Pending<'_, T> {
        Pending(self.members.iter())
    }

    /// The mechanism by which the end of a member is learned; none if it has ended or is
    /// not in the set.
    pub fn mechanism(&self, key: Key) -> Option<Mechanism> {
        match &self.members.get(&key.0)?.watching {
            MemberWatch::Polled(mechanism, _) => Some(*mechanism),
            MemberWatch::Fallback(job) => Some(job.mechanism()),
            MemberWatch::ExitThenReap(_) => Some(Mechanism::Polling),
            MemberWatch::Over => None,
        }
    }
}

/// Iterates over the members of a [`WaitSet`].
pub struct Pending<'a, T>(std::collections::btree_map::Iter<'a, u64, SetMember<T>>);

impl<'a, T> Iterator for Pending<'a, T> {
    type Item = (Key, &'a T);

    fn next(&mut self) -> Option<(Key, &'a T)> {
        let (key, member) = self.0.next()?;
        Some((Key(*key), &member.item))
    }
}

impl<'a, T> IntoIterator for &'a WaitSet<T> {
    type Item = (Key, &'a T);
    type IntoIter = Pending<'a, T>;

    fn into_iter(self) -> Pending<'a, T> {
        self.iter()
    }
}

/// Readable while [`WaitSet::wait`] would return at once.
impl<T> AsFd for WaitSet<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// The descriptor for event loops that ask for a number, as tokio's does.
impl<T> AsRawFd for WaitSet<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<T> fmt::Debug for WaitSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitSet")
            .field("members", &self.members.len())
            .field("over", &self.over.len())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Pending<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}
