//! A queue as it is seen from outside.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::format::{
    ClaimState, Cursor, DONE, HEAD, PEER, RECEIVER_LOCK, REFUSED, SPACE, TAIL, lane_lock,
};
use crate::names::{self, QueueName};
use crate::shm::{QueueFile, ReceiverPage};
use crate::wakeup::Asleep;
use procwright_os::{proc, shared_memory};

/// The state of a queue now. Each part is from another moment, and all of it may be
/// different a moment later.
#[doc(alias = "mq_attr")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Number of senders that the queue has room for.
    pub lanes: u32,
    /// Bytes of a lane at first.
    pub first: u64,
    /// Bytes of a lane at most.
    pub limit: u64,
    /// Bytes of memory that the whole queue takes now.
    pub memory: u64,
    /// Number of times that a process began to receive, or went on in another thread.
    pub epoch: u64,
    /// Number that changes whenever a sender comes or leaves.
    pub claims: u32,
    /// The receiving end.
    pub receiver: ReceiverStat,
    /// The lanes that have, or had, a sender: not those that are free.
    pub taken: Vec<LaneStat>,
}

/// The receiving end of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverStat {
    /// Presence of the receiver.
    pub state: ReceiverState,
    /// Number of the receiver's process; none if that is unknown or has no meaning here, in
    /// another pid namespace.
    pub pid: Option<i32>,
    /// State of the receiver while it sleeps; none if it is awake.
    pub asleep: Option<Asleep>,
}

/// Presence of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverState {
    /// The receiver lives.
    Alive,
    /// The receiver's process has died, and no other has taken over.
    Dead,
    /// The receiver has left.
    Closed,
}

impl ReceiverState {
    /// The word for it in reports.
    pub const fn name(self) -> &'static str {
        match self {
            ReceiverState::Alive => "alive",
            ReceiverState::Dead => "dead",
            ReceiverState::Closed => "closed",
        }
    }
}

/// A lane that is not free.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneStat {
    /// Number of the lane, from 0 on.
    pub number: u32,
    /// State of the lane.
    pub state: LaneState,
    /// The process of its sender, under the number that it has for itself; none if it did
    /// not say.
    pub pid: Option<i32>,
    /// Number of the sender's process: that of its invitation, or the next one of the
    /// queue.
    pub guest: u32,
    /// Bytes between sender and receiver: messages, their records, and gaps where a block
    /// was left. None if the words of the lane make no sense.
    pub waiting: Option<u64>,
    /// Size of the block that the sender is in.
    pub block: Option<u64>,
    /// True if the sender waits for room.
    pub is_blocked: bool,
}

/// State of a lane that is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaneState {
    /// A sender has it.
    Taken,
    /// A sender has left it; its messages are still to be received.
    Left,
    /// A sender has died; its messages are still to be received.
    Orphaned,
    /// The receiver is making it as good as new.
    Clearing,
    /// The receiver does not read it any more: the lane is damaged.
    Damaged,
}

impl LaneState {
    /// The word for it in reports.
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

/// Looks at the queue of that name, without taking part in it: no other process notices,
/// and none is held up.
///
/// ```no_run
/// let stat = procwright_queue::stat("jobs")?;
/// let waiting: u64 = stat.taken.iter().filter_map(|lane| lane.waiting).sum();
/// println!("{} senders, {waiting} bytes", stat.taken.len());
/// # Ok::<(), procwright_queue::Error>(())
/// ```
///
/// # Errors
/// [`Error::NoQueue`], [`Error::BadName`], [`Error::WrongVersion`]; [`Error::Io`] if the
/// directory of the names cannot be used, or the processes that have the queue may not be
/// looked into; [`Error::Invalid`] if the queue's header or page makes no sense.
#[doc(alias = "mq_getattr")]
pub fn stat(name: &str) -> Result<Stat, Error> {
    let (found, _) = names::find(&QueueName::new(name)?)?;
    let queue = QueueFile::open_as_sender(found.file.as_fd(), found.nonce)?;
    Stat::read(&queue)
}

/// The names of all queues of this user: also of those that no process has any more, whose
/// [`stat`] is [`Error::NoQueue`].
///
/// # Errors
/// [`Error::Io`] if the directory of the names cannot be used.
pub fn names() -> Result<Vec<String>, Error> {
    QueueName::all()
}

impl Stat {
    fn read(queue: &QueueFile) -> Result<Stat, Error> {
        let file = queue.file()?;
        let geometry = queue.geometry();
        // Before the lanes: a sender takes its lane and is counted then. Read behind them, the
        // count would tell of one that came in between, and of no lane that it has: it would
        // seem to have left.
        let claims = queue.claims().load(Ordering::Acquire);
        let mut taken = Vec::new();
        for number in 0..geometry.lanes() {
            taken.extend(LaneStat::read(queue, file, number)?);
        }
        let page = ReceiverPage::read(&queue.receivers)
            .map_err(|_| Error::Invalid("what its receiver says makes no sense".into()))?;
        Ok(Stat {
            lanes: geometry.lanes(),
            first: geometry.size(0),
            limit: geometry.window(),
            memory: shared_memory::allocated_bytes(file)?,
            claims,
            epoch: ReceiverPage::last_epoch(&queue.receivers),
            receiver: ReceiverStat::read(queue, file, page.as_ref())?,
            taken,
        })
    }
}

impl ReceiverStat {
    /// The receiver's lock says whether it is there: the word of a thread that has ended
    /// does not.
    fn read(
        queue: &QueueFile,
        file: BorrowedFd<'_>,
        page: Option<&ReceiverPage>,
    ) -> Result<ReceiverStat, Error> {
        let is_there = shared_memory::is_locked(file, RECEIVER_LOCK)?;
        let state = match page {
            _ if is_there => ReceiverState::Alive,
            Some(page) if page.is_closed => ReceiverState::Closed,
            _ => ReceiverState::Dead,
        };
        let ours = proc::pid_namespace();
        let holder = page.map(|page| page.holder);
        let holder = holder.filter(|one| one.namespace.is_some() && one.namespace == ours);
        let asleep = match Asleep::from_word(queue.sleep_word().load(Ordering::Relaxed)) {
            _ if !is_there => None,
            None => None,
            Some(Asleep::Word) => Some(Asleep::Word),
            Some(Asleep::Descriptor) => Some(Asleep::Descriptor),
        };
        Ok(ReceiverStat {
            state,
            pid: holder.map(|one| one.pid),
            asleep,
        })
    }
}

impl LaneStat {
    /// The lane, or none if it is free. The file is read, not mapped: a lane's page that
    /// was never written to needs no memory for that.
    fn read(
        queue: &QueueFile,
        file: BorrowedFd<'_>,
        number: u32,
    ) -> Result<Option<LaneStat>, Error> {
        let geometry = queue.geometry();
        let state = queue.claim(number).state();
        if state == ClaimState::Free {
            return Ok(None);
        }
        let (line, page) = (geometry.line(number), geometry.lane_page(number));
        let at = |at: u64| shared_memory::read_u64(file, at);
        // Head and done come before the tail: the receiver is never ahead of the sender.
        let (head, done) = (at(line + HEAD)?, at(line + DONE)?);
        let tail = Cursor::from_word(at(page + TAIL)?);
        let peer = at(page + PEER)?;
        let (pid, guest) = (peer as u32, (peer >> 32) as u32);
        let is_refused = head == REFUSED;
        let [head, done] = [head, done].map(Cursor::from_word);
        let read = head.position.max(done.position);
        let is_valid = !is_refused && [head, done, tail].iter().all(|one| one.is_valid(geometry));
        let has_sender = shared_memory::is_locked(file, lane_lock(number))?;
        let state = match state {
            _ if is_refused => LaneState::Damaged,
            ClaimState::Left => LaneState::Left,
            ClaimState::Clearing => LaneState::Clearing,
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
