//! A queue as it is seen from outside.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use super::ground::Ground;
use super::names::{self, Name};
use super::page::Page;
use crate::queue::Error;
use crate::queue::bell::Sleep;
use crate::queue::format::{
    Cursor, DONE, HEAD, PEER, READER_LOCK, REFUSED, SPACE, State, TAIL, lane_lock,
};
use crate::sys::{proc, shared};

/// What a queue is like now. All of it may be another a moment later, and each part
/// is from another moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// How many senders it has room for.
    pub lanes: u32,
    /// What a lane takes at first.
    pub first: u64,
    /// What a lane can take at most.
    pub limit: u64,
    /// The memory that it takes now, the whole of it.
    pub memory: u64,
    /// How often somebody began to receive, or went on in another thread.
    pub epoch: u64,
    /// Changes whenever a sender comes or leaves.
    pub claims: u32,
    /// Who receives.
    pub receiver: ReceiverStat,
    /// The lanes that somebody has, or had: not those that are free.
    pub taken: Vec<LaneStat>,
}

/// The receiving end of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverStat {
    /// Whether it is there.
    pub state: ReceiverState,
    /// The number of its process; none if that is unknown or has no meaning here, in
    /// another pid namespace.
    pub pid: Option<i32>,
    /// What it sleeps on; none if it is awake.
    pub asleep: Option<Asleep>,
}

/// Whether a receiver is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverState {
    /// It lives.
    Alive,
    /// Its process has died, and no other has taken over.
    Dead,
    /// It has left.
    Closed,
}

impl ReceiverState {
    /// As in reports.
    pub const fn name(self) -> &'static str {
        match self {
            ReceiverState::Alive => "alive",
            ReceiverState::Dead => "dead",
            ReceiverState::Closed => "closed",
        }
    }
}

/// How a receiver sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asleep {
    /// On a word: it was awake some milliseconds ago.
    Word,
    /// On its descriptor.
    Descriptor,
}

impl Asleep {
    /// As in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Asleep::Word => "word",
            Asleep::Descriptor => "descriptor",
        }
    }
}

/// A lane that is not free.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneStat {
    /// Its number, from 0 on.
    pub number: u32,
    /// What it is.
    pub state: LaneState,
    /// The process of its sender, as that calls itself; none if it did not say.
    pub pid: Option<i32>,
    /// By which invitation it has come, or which number it has drawn.
    pub guest: u32,
    /// The bytes that are between sender and receiver: messages, what is in front of
    /// each, and gaps where a block was left. None if what stands there makes no sense.
    pub waiting: Option<u64>,
    /// The block that the sender is in.
    pub block: Option<u64>,
    /// Whether the sender waits for room.
    pub is_blocked: bool,
}

/// What a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaneState {
    /// Somebody sends.
    Taken,
    /// Its sender has left; what is in it is to be received yet.
    Left,
    /// Its sender has died; the same.
    Orphaned,
    /// It is being made as good as new.
    Clearing,
    /// The receiver does not read it any more: what it found there is no lane.
    Damaged,
}

impl LaneState {
    /// As in reports.
    pub const fn name(self) -> &'static str {
        match self {
            LaneState::Taken => "taken",
            LaneState::Left => "left",
            LaneState::Orphaned => "orphaned",
            LaneState::Clearing => "clearing",
            LaneState::Damaged => "damaged",
        }
    }
}

/// Looks at the queue of that name, without taking part in it: nobody notices, and
/// nothing is held up.
///
/// ```no_run
/// let stat = procwright::queue::stat("jobs")?;
/// let waiting: u64 = stat.taken.iter().filter_map(|lane| lane.waiting).sum();
/// println!("{} senders, {waiting} bytes", stat.taken.len());
/// # Ok::<(), procwright::queue::Error>(())
/// ```
///
/// # Errors
/// [`Error::NoQueue`], [`Error::BadName`], [`Error::WrongVersion`]; [`Error::Io`] if
/// the directory of the names cannot be used, or the processes that have the queue may
/// not be looked into; [`Error::Invalid`] if what they have makes no sense.
pub fn stat(name: &str) -> Result<Stat, Error> {
    let (found, _) = names::find(name)?;
    let ground = Ground::attach(found.file.as_fd(), found.nonce)?;
    Stat::of(&ground)
}

/// The names of all queues of this user: also of those that nobody has any more,
/// whose [`stat`] is [`Error::NoQueue`].
///
/// # Errors
/// [`Error::Io`] if the directory of the names cannot be used.
pub fn names() -> Result<Vec<String>, Error> {
    Name::all()
}

impl Stat {
    fn of(ground: &Ground) -> Result<Stat, Error> {
        let file = ground.file()?;
        let geometry = ground.geometry();
        let mut taken = Vec::new();
        for number in 0..geometry.lanes() {
            taken.extend(LaneStat::of(ground, file, number)?);
        }
        let page = Page::read(&ground.receivers)
            .map_err(|_| Error::Invalid("what its receiver says makes no sense".into()))?;
        Ok(Stat {
            lanes: geometry.lanes(),
            first: geometry.size(0),
            limit: geometry.window(),
            memory: shared::memory(file)?,
            claims: ground.claims().load(Ordering::Relaxed),
            epoch: Page::epochs(&ground.receivers),
            receiver: ReceiverStat::of(ground, file, page.as_ref())?,
            taken,
        })
    }
}

impl ReceiverStat {
    /// Its lock says whether it is there: the word of a thread that has ended does not.
    fn of(
        ground: &Ground,
        file: BorrowedFd<'_>,
        page: Option<&Page>,
    ) -> Result<ReceiverStat, Error> {
        let is_there = shared::is_locked(file, READER_LOCK)?;
        let state = match page {
            _ if is_there => ReceiverState::Alive,
            Some(page) if page.is_closed => ReceiverState::Closed,
            _ => ReceiverState::Dead,
        };
        let ours = proc::pid_namespace();
        let holder = page.map(|page| page.holder);
        let holder = holder.filter(|one| one.namespace.is_some() && one.namespace == ours);
        let asleep = match Sleep::of(ground.bell().load(Ordering::Relaxed)) {
            _ if !is_there => None,
            None => None,
            Some(Sleep::Word) => Some(Asleep::Word),
            Some(Sleep::Link) => Some(Asleep::Descriptor),
        };
        Ok(ReceiverStat {
            state,
            pid: holder.map(|one| one.pid),
            asleep,
        })
    }
}

impl LaneStat {
    /// None if it is free. Looked at by reads of the file: a lane's page that nobody
    /// has written to needs no memory for that.
    fn of(ground: &Ground, file: BorrowedFd<'_>, number: u32) -> Result<Option<LaneStat>, Error> {
        let geometry = ground.geometry();
        let state = ground.state(number).load(Ordering::Acquire);
        if state == State::Free as u32 {
            return Ok(None);
        }
        let (line, page) = (geometry.line(number), geometry.lane(number));
        let at = |at: u64| shared::number_at(file, at);
        // The receiver's first: it is never ahead of the sender.
        let (head, done) = (at(line + HEAD)?, at(line + DONE)?);
        let tail = Cursor::of_word(at(page + TAIL)?);
        let peer = at(page + PEER)?;
        let (pid, guest) = (peer as u32, (peer >> 32) as u32);
        let is_refused = head == REFUSED;
        let [head, done] = [head, done].map(Cursor::of_word);
        let read = head.position.max(done.position);
        let is_valid = !is_refused && [head, done, tail].iter().all(|one| one.is_valid(geometry));
        let has_sender = shared::is_locked(file, lane_lock(number))?;
        let state = match state {
            _ if is_refused => LaneState::Damaged,
            state if state == State::Left as u32 => LaneState::Left,
            state if state == State::Clearing as u32 => LaneState::Clearing,
            state if state != State::Taken as u32 => LaneState::Damaged,
            _ if has_sender => LaneState::Taken,
            _ => LaneState::Orphaned,
        };
        Ok(Some(LaneStat {
            number,
            state,
            pid: Some(pid.cast_signed()).filter(|pid| *pid > 0),
            guest,
            waiting: is_valid.then(|| tail.position.saturating_sub(read)),
            block: is_valid.then(|| geometry.size(tail.block)),
            is_blocked: has_sender && at(page + SPACE)? as u32 != 0,
        }))
    }
}
