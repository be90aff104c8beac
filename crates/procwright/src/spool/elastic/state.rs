//! What lies where, and the accounts of it: everything behind the lock.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::disk::{Disk, Extent};
use super::marks::Marks;
use super::monitor::Figures;
use super::pool::Pool;
use super::spill::Spill;
use crate::spool::Overflow;
use crate::spool::budget::{LEAST_MEMORY, Share};
use crate::spool::fifo::BoxError;
use crate::sys::memory::Block;
use crate::sys::wake::Wake;

/// The least block of a queue whose own policy allows for more.
const LEAST_BLOCK: usize = 16 * 1024;

/// Some bytes of a block, at least one.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) block: Arc<Block>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Piece {
    pub(super) fn len(&self) -> u64 {
        (self.end - self.start) as u64
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.start..self.end]
    }
}

#[derive(Debug)]
pub(super) enum Entry {
    Piece(Piece),
    /// So many bytes were dropped here.
    Gap(u64),
}

impl Entry {
    /// The bytes of it that are in memory.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Entry::Piece(piece) => piece.len(),
            Entry::Gap(_) => 0,
        }
    }
}

/// What the consumer has before it.
#[derive(Debug)]
pub(super) enum Next {
    Piece(Piece),
    Gap(u64),
    Disk(Extent),
    Empty,
    End,
}

/// How the producer finished.
#[derive(Debug)]
pub(super) enum Finish {
    /// It said all.
    Whole,
    Failed(BoxError),
    /// More came than may be kept, by [`Overflow::Fail`].
    Overflowed(u64),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) policy: Overflow,
    /// The bytes that may lie in memory by the policy.
    limit: u64,
    /// What it may take of what there is for all.
    pub(super) share: Share,
    /// The producer fills the last piece on.
    pub(super) filling: bool,
    pub(super) pool: Pool,
    /// The consumer takes from here first, then from disk, then from the tail.
    /// Without anything on disk the head is what it was when spilling began.
    pub(super) head: VecDeque<Entry>,
    pub(super) disk: Option<Disk>,
    pub(super) tail: VecDeque<Entry>,
    /// The bytes in head and tail, and in the consumer's hand.
    pub(super) in_memory: u64,
    /// Those of them in the consumer's hand.
    in_hand: u64,
    /// Bytes that the consumer has in hand from the disk.
    pub(super) read_back: u64,
    pub(super) spill: Spill,

    pub(super) came: u64,
    pub(super) went: u64,
    /// Dropped bytes of whose gaps the consumer knows.
    passed: u64,
    pub(super) dropped: u64,
    pub(super) lost: u64,
    pub(super) spilled: u64,
    peak: u64,
    marks: Marks,

    /// Since when the producer has been refused.
    refused_since: Option<Instant>,
    refused: Duration,
    pub(super) finish: Option<Finish>,
    /// The consumer takes no more.
    pub(super) closed: bool,
    /// What is there is not to be given out any more.
    pub(super) left: bool,
    pub(super) consumer_waits: bool,
    /// What a waiting consumer sleeps on, made when it first does. A condition
    /// variable is a futex, and a process has few buckets for those: to close one of
    /// 9,000 streams, each with a sleeper, took 400 µs, and takes 35 so, as it does
    /// with ten. That stays for when there is no descriptor to be had.
    pub(super) bell: Option<Arc<Wake>>,
    pub(super) watchers: u32,
    /// Readable while there is something to read, if anybody asked for that.
    pub(super) readable: Option<Arc<Wake>>,
    /// It is rung and need not be again.
    rung: bool,
    /// The offset of the first byte that was more than may be kept.
    pub(super) overflowed: Option<u64>,
    /// Rung when the producer has to wait, if anybody wants to know.
    pub(super) full: Weak<Wake>,
    /// When the consumer last looked for something or took it.
    pub(super) taken: Option<Instant>,
    /// The end was seen, and all that came before was taken in.
    pub(super) whole: bool,
}

impl State {
    pub(super) fn new(
        policy: Overflow,
        limit: u64,
        pool: Pool,
        disk: Option<Disk>,
        share: Share,
    ) -> State {
        State {
            policy,
            limit,
            share,
            filling: false,
            pool,
            head: VecDeque::new(),
            disk,
            tail: VecDeque::new(),
            in_memory: 0,
            in_hand: 0,
            read_back: 0,
            spill: Spill::default(),
            came: 0,
            went: 0,
            passed: 0,
            dropped: 0,
            lost: 0,
            spilled: 0,
            peak: 0,
            marks: Marks::default(),
            refused_since: None,
            refused: Duration::ZERO,
            finish: None,
            closed: false,
            left: false,
            consumer_waits: false,
            bell: None,
            watchers: 0,
            readable: None,
            rung: false,
            overflowed: None,
            full: Weak::new(),
            taken: None,
            whole: false,
        }
    }

    /// Whether there is somebody to put more in for.
    pub(super) fn wants_more(&self) -> bool {
        !self.closed && !self.left && self.finish.is_none()
    }

    /// The bytes that may lie in memory now.
    pub(super) fn limit(&self) -> u64 {
        self.share.memory(self.limit)
    }

    /// Whether that is less than what its policy allows.
    pub(super) fn has_less(&self) -> bool {
        self.limit() < self.limit
    }

    /// The size of the next block of memory.
    pub(super) fn block(&self) -> usize {
        let idle = self.share.idle_memory(self.limit);
        // Small reads cost more than they are worth.
        super::block_size(idle).max(LEAST_BLOCK)
    }

    fn on_disk(&self) -> u64 {
        self.disk.as_ref().map_or(0, Disk::unread)
    }

    /// Nothing more will be put in or taken out: whoever looks at the figures keeps
    /// no memory, no descriptor and no share of what others could have. To be dropped without the lock.
    pub(super) fn wind_up(&mut self) -> Vec<Arc<Block>> {
        self.bell = None;
        self.share = Share::alone();
        self.pool.close()
    }

    /// After files were made or given back: whether it takes a share of the disk.
    pub(super) fn count_files(&mut self) {
        let has_files = self.disk.as_ref().is_some_and(Disk::has_files);
        self.share.spilled(has_files);
    }

    /// All that waits for the consumer, what it has in hand included.
    pub(super) fn waiting(&self) -> u64 {
        self.in_memory + self.read_back + self.on_disk()
    }

    /// How far into the stream the consumer has come: the offset of its next
    /// byte, or of the gap in front of it.
    pub(super) fn position(&self) -> u64 {
        self.went + self.lost + self.passed
    }

    // The producer's side.

    /// How many bytes may be kept more. After a refusal not one until it pays:
    /// whoever goes on for every single byte that was taken would wake for each,
    /// and gaps of dropped bytes would be as many as bytes.
    pub(super) fn room(&mut self, now: Instant) -> u64 {
        let limit = self.limit();
        let mut room = limit.saturating_sub(self.in_memory);
        let mut worthwhile = (limit / 8).max(1);
        if room < worthwhile && limit < self.limit && !self.head.is_empty() {
            // The head stays in memory until it is read. It may be all that there
            // is, and more than the limit: it was put aside when the share was
            // larger. What comes needs some room to get to the disk nevertheless.
            let others = self.in_memory - self.head_bytes();
            room = room.max(LEAST_MEMORY.saturating_sub(others));
            worthwhile = worthwhile.min(LEAST_MEMORY / 2);
        }
        if self.refused_since.is_some() && room >= worthwhile {
            self.stop_refusing(now);
        }
        match self.refused_since {
            Some(_) => 0,
            None => room,
        }
    }

    fn head_bytes(&self) -> u64 {
        self.head.iter().map(Entry::bytes).sum()
    }

    /// There was no room.
    pub(super) fn refuse(&mut self, now: Instant) {
        if self
            .refused_since
            .replace(self.refused_since.unwrap_or(now))
            .is_none()
            && self.policy.is_lossless()
            && let Some(full) = self.full.upgrade()
        {
            full.ring();
        }
    }

    /// Since when the producer has to wait.
    pub(super) fn held_since(&self) -> Option<Instant> {
        let holds = self.policy.is_lossless() && !self.closed && self.finish.is_none();
        self.refused_since.filter(|_| holds)
    }

    fn stop_refusing(&mut self, now: Instant) {
        self.refused += self.being_refused(now);
        self.refused_since = None;
    }

    /// For how long the producer has been waiting. Whose bytes are dropped does
    /// not wait.
    fn being_refused(&self, now: Instant) -> Duration {
        match self.refused_since {
            Some(since) if self.policy.is_lossless() => now.saturating_duration_since(since),
            _ => Duration::ZERO,
        }
    }

    /// Whether a producer that was refused is to be rung.
    pub(super) fn let_on(&mut self, now: Instant) -> bool {
        self.refused_since.is_some() && self.room(now) > 0 && self.policy.is_lossless()
    }

    /// The bytes `start..end` of `block` have come, the latest of all. The
    /// offset of the first byte that was ever dropped, if it was now.
    pub(super) fn push(
        &mut self,
        block: &Arc<Block>,
        start: usize,
        end: usize,
        now: Instant,
    ) -> Option<u64> {
        let n = (end - start) as u64;
        let oldest = (self.dropped == 0).then(|| self.position() + self.in_hand);
        self.marks.came(self.came, now);
        self.came += n;
        self.in_memory += n;
        match self.tail.back_mut() {
            Some(Entry::Piece(last)) if Arc::ptr_eq(&last.block, block) && last.end == start => {
                last.end = end;
            }
            _ => self.tail.push_back(Entry::Piece(Piece {
                block: Arc::clone(block),
                start,
                end,
            })),
        }
        if matches!(self.policy, Overflow::DropOldest { .. }) {
            self.cut();
        }
        self.peak = self.peak.max(self.waiting());
        self.share.keeps(self.in_memory);
        oldest.filter(|_| self.dropped > 0)
    }

    /// Forgets the oldest bytes until the rest is no more than may be kept. What
    /// the consumer has in hand is delivered already, as far as anybody knows.
    fn cut(&mut self) {
        let waiting = self.in_memory - self.in_hand;
        let mut excess = waiting.saturating_sub(self.limit());
        let mut gap = 0;
        while excess > 0 {
            match self.tail.pop_front() {
                Some(Entry::Gap(n)) => gap += n,
                Some(Entry::Piece(mut piece)) => {
                    let n = piece.len().min(excess);
                    piece.start += n as usize;
                    excess -= n;
                    gap += n;
                    self.dropped += n;
                    self.in_memory -= n;
                    if piece.start < piece.end {
                        self.tail.push_front(Entry::Piece(piece));
                    } else {
                        self.pool.give(piece.block);
                    }
                }
                None => break,
            }
        }
        if gap > 0 {
            match self.tail.front_mut() {
                Some(Entry::Gap(n)) => *n += gap,
                _ => self.tail.push_front(Entry::Gap(gap)),
            }
            self.marks_follow();
        }
    }

    /// `n` bytes have come that are not kept.
    pub(super) fn skip(&mut self, n: u64) {
        self.came += n;
        self.dropped += n;
        match self.tail.back_mut() {
            Some(Entry::Gap(gap)) => *gap += n,
            _ => self.tail.push_back(Entry::Gap(n)),
        }
    }

    // The consumer's side.

    /// Takes what comes next. A piece goes into the consumer's hand and counts
    /// as waiting until it says [`State::took`].
    pub(super) fn next(&mut self) -> Next {
        if self.left {
            return Next::End;
        }
        let entry = match self.head.pop_front() {
            None => match self.disk.as_mut().and_then(Disk::next) {
                Some(extent) => return Next::Disk(extent),
                None => self.tail.pop_front(),
            },
            entry => entry,
        };
        match entry {
            Some(Entry::Piece(piece)) => {
                self.in_hand = piece.len();
                Next::Piece(piece)
            }
            Some(Entry::Gap(n)) => {
                self.passed += n;
                Next::Gap(n)
            }
            None if self.finish.is_some() => Next::End,
            None => Next::Empty,
        }
    }

    /// Whether there is something for the consumer, the end included.
    pub(super) fn has_next(&self) -> bool {
        let empty = self.head.is_empty() && self.tail.is_empty() && self.on_disk() == 0;
        !empty || self.finish.is_some() || self.left
    }

    /// The consumer is done with `n` bytes from memory.
    pub(super) fn took(&mut self, n: u64) {
        self.in_memory -= n;
        self.in_hand -= n;
        self.went += n;
        self.share.keeps(self.in_memory);
        self.marks_follow();
    }

    /// The consumer is done with `n` bytes that it had read back.
    pub(super) fn took_back(&mut self, n: u64) {
        self.read_back -= n;
        self.went += n;
        self.marks_follow();
    }

    fn marks_follow(&mut self) {
        if self.waiting() == 0 {
            return self.marks.clear();
        }
        // The oldest byte lies behind a gap if that is all that is before it.
        let behind = match self.tail.front() {
            Some(Entry::Gap(n)) if self.in_hand == 0 => *n,
            _ => 0,
        };
        self.marks.went(self.position() + behind);
    }

    /// Whether nothing more will move.
    pub(super) fn has_ended(&self) -> bool {
        self.closed || self.left || (self.finish.is_some() && self.waiting() == 0)
    }

    /// What the consumer may sleep on, none if there is no descriptor left.
    pub(super) fn bell(&mut self) -> Option<Arc<Wake>> {
        if self.bell.is_none() {
            self.bell = Wake::new().ok().map(Arc::new);
        }
        self.bell.clone()
    }

    /// Makes the descriptor, if anybody wants one, readable or not as it should
    /// be: while there is something for the consumer, what it has in hand
    /// included, and for ever once it is closed.
    pub(super) fn settle(&mut self) {
        let Some(readable) = &self.readable else {
            return;
        };
        let in_hand = self.in_hand > 0 || self.read_back > 0;
        let is_ready = in_hand || self.closed || self.has_next();
        if is_ready != std::mem::replace(&mut self.rung, is_ready) {
            match is_ready {
                true => readable.ring(),
                false => readable.silence(),
            }
        }
    }

    // Everybody's.

    pub(super) fn figures(&self, now: Instant) -> Figures {
        let since = |at: Instant| now.saturating_duration_since(at);
        Figures {
            bytes_in: self.came,
            bytes_out: self.went,
            lag_bytes: self.waiting(),
            lag: self.marks.oldest().map_or(Duration::ZERO, since),
            peak_bytes: self.peak,
            memory_bytes: self.pool.alive() as u64,
            memory_peak_bytes: self.pool.peak() as u64,
            disk_bytes: self.on_disk(),
            disk_peak_bytes: self.disk.as_ref().map_or(0, Disk::peak),
            spilled_bytes: self.spilled,
            dropped_bytes: self.dropped,
            lost_bytes: self.lost,
            refused: self.refused + self.being_refused(now),
        }
    }
}
