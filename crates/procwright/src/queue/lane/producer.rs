//! The sender's end.

use std::io;

use super::{Damage, Memory, Place};
use crate::queue::format::{
    ALIGNED, Cursor, Geometry, Kind, LONG, RECORD, REFUSED, Record, SHORT, Stamp,
};
use crate::sync::{Ordering, fence};

/// Why there is no room.
#[derive(Debug)]
pub(crate) enum Shortage {
    /// The receiver has to read first, and the lane may not grow further. It may
    /// have to be told: what it has to read may be no message.
    Full,
    /// No memory is left.
    Memory(io::Error),
    /// The receiver has found damage and reads this lane no more.
    Refused,
    /// What the receiver says of this lane is wrong.
    Damaged(Damage),
    /// It would wait a moment, and has shown what nobody was told of: a receiver that
    /// sleeps makes no room. To be told, and tried again.
    Untold,
}

/// A block that the receiver has not left yet.
#[derive(Clone, Copy, Debug)]
struct Behind {
    block: u32,
    /// What is in it lies between these positions: the first that may not be read
    /// yet, and that of the jump.
    first: u64,
    jump: u64,
}

/// Writes to a lane. Everything that it relies on is its own; of the receiver it
/// reads the head alone, and never trusts it.
#[derive(Debug)]
pub(crate) struct Producer<M> {
    memory: M,
    shape: Geometry,
    /// The last block that it may grow to.
    ceiling: u32,
    block: u32,
    /// Of the next record.
    position: u64,
    /// Up to here a message can be written without looking: the lap's end, what
    /// the receiver has yet to read and what has memory are all behind it.
    clear: u64,
    /// What is in this block and may not be overwritten begins here.
    floor: u64,
    /// Up to here this block has memory.
    ready: u64,
    /// Where this block was entered.
    entered: u64,
    /// The blocks whose memory is kept and was provided whole, a bit each.
    provided: u32,
    /// The tail that the receiver sees.
    published: u64,
    /// It was shown on the way to room, and nobody was told yet.
    is_untold: bool,
    /// Blocks before this one that are not read yet, the oldest first. Never more
    /// than there are blocks, so it allocates once.
    behind: Vec<Behind>,
    head: u64,
    /// How many looks it is worth to spend before it takes more than [`WARM`].
    patience: u32,
}

/// How many looks that are at most: 60 µs where a pause takes 27 ns.
const PATIENCE: u32 = 64;

/// Behind this a lane takes more of the caches than is good for the others: with four
/// senders of 1 KiB a third, with four of 64 KiB a tenth as many messages go through
/// where all of them may grow at once. And up to this, long messages may have
/// [`ROOMY`] places: lines that come back at once are in both processors' own caches,
/// and the sender waits for each until the other has let it go (64 KiB there and back
/// take 20 µs in 128 KiB, 12 in 1 MiB, 7 in 2 MiB, 7 to 9 in 4 and 8: AMD EPYC with
/// 1 MiB of L2 each and an L3 for both).
const WARM: u64 = 2 * 1024 * 1024;
const ROOMY: u64 = 32;

/// The longer a message is, the longer it takes to be read, and the longer it takes to
/// get memory for another: for each so many bytes it is worth as much patience again.
const SLOW: u64 = 64 * 1024;
/// As much of that is the most: 4 ms.
const SLOWEST: u64 = 63;

/// Memory is provided in such steps: few system calls, and little memory that is
/// not used.
const STEP: u64 = 1024 * 1024;

impl<M: Memory> Producer<M> {
    /// The sender's end of a lane that is empty, and that nobody else has.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn new(memory: M, shape: Geometry) -> Result<Producer<M>, Damage> {
        let word = memory.tail();
        let cursor = Cursor::of_word(word);
        if memory.head() != word || !cursor.is_valid(&shape) {
            return Err(Damage("the lane is not empty"));
        }
        // The last sender may have been killed when it had written that of a message
        // that was never shown.
        memory.set_stamp(Stamp::NONE);
        Ok(Producer {
            memory,
            shape,
            ceiling: shape.blocks() - 1,
            block: cursor.block,
            position: cursor.position,
            clear: cursor.position,
            floor: cursor.position,
            ready: cursor.position,
            entered: cursor.position,
            provided: 0,
            published: word,
            is_untold: false,
            behind: Vec::with_capacity(shape.blocks() as usize),
            head: word,
            patience: 0,
        })
    }

    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// From now on it grows no further than to blocks of this size.
    pub(crate) fn set_limit(&mut self, bytes: u64) {
        let last = (0..self.shape.blocks()).rev();
        let fits = last.clone().find(|block| self.shape.size(*block) <= bytes);
        self.ceiling = fits.unwrap_or(0);
    }

    /// Rather than that its lane grows over what fits into the caches, it waits a
    /// moment for a receiver that is about to make room.
    pub(crate) fn be_patient(&mut self) {
        self.patience = PATIENCE;
    }

    /// The longest message that can ever be sent: that of the largest block, but
    /// for its own record and for the place that is kept for a jump.
    pub(crate) fn longest(&self) -> u64 {
        let most = self.shape.size(self.ceiling.max(self.block)) - RECORD;
        match most < Record::most(LONG) {
            true => most - RECORD,
            false => most - ALIGNED,
        }
    }

    /// Room for a message: the place that it is to be written to. It stays the
    /// same until it is finished. Who `may_wait` is more patient with long messages.
    ///
    /// # Errors
    /// If there is none now. `length` is at most [`longest`](Self::longest).
    #[inline]
    pub(crate) fn reserve(&mut self, length: u64, may_wait: bool) -> Result<Place, Shortage> {
        let need = Record::most(length);
        if self.position + need > self.clear {
            self.make_room(need, may_wait)?;
        }
        let gap = match length < LONG {
            true => RECORD,
            false => Record::gap(self.position),
        };
        Ok(Place {
            at: self.place() + gap,
            length,
        })
    }

    /// Writes a message's bytes to the place that is reserved.
    #[inline]
    pub(crate) fn fill(&self, place: Place, bytes: &[u8]) {
        self.memory.copy_in(place.at, bytes);
    }

    /// The message in that place is whole: of this length, which is at most the reserved
    /// one. The receiver does not see it yet.
    #[inline]
    pub(crate) fn finish(&mut self, place: Place, length: u64) {
        // A place in memory is no longer than a gibibyte.
        let kind = match place.length < LONG {
            true => Kind::Message(length as u32),
            false => Kind::Aligned(length as u32),
        };
        let record = Record::to_word(kind, self.position);
        let start = self.place();
        self.memory.set_record(start, record);
        self.position += Record::takes(place.at - start, length);
    }

    /// Shows the receiver all that is finished: one store. Says whether anything was
    /// shown since it was last asked: then a receiver that sleeps is to be woken.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        let word = self.cursor().to_word();
        let is_new = word != self.published;
        if is_new {
            self.published = word;
            self.memory.set_tail(word);
        }
        is_new | std::mem::take(&mut self.is_untold)
    }

    /// Writes a short message and shows it with all that is finished, if there is room
    /// at once; says whether. The receiver that waits for it needs no more than the
    /// line that it looks at: the mailbox has the same bytes.
    #[inline]
    pub(crate) fn send_short(&mut self, bytes: &[u8]) -> bool {
        let length = bytes.len() as u64;
        let need = Record::takes(RECORD, length);
        if bytes.len() > SHORT || self.position + need > self.clear {
            return false;
        }
        let place = self.place();
        self.memory.set_stamp(Stamp::to_word(length, self.position));
        // Who sees one of these bytes sees whose they are.
        fence(Ordering::Release);
        let at = place + RECORD;
        self.memory.post(at, bytes);
        const { assert!(SHORT < LONG as usize, "a short message follows its record") };
        self.finish(Place { at, length }, length);
        self.publish();
        true
    }

    /// Shows it on the way to room. Whether that is found or not, it has to be told.
    fn publish_early(&mut self) {
        self.is_untold = self.publish();
    }

    /// How far it has got, shown or not.
    #[inline]
    pub(super) fn cursor(&self) -> Cursor {
        Cursor {
            block: self.block,
            position: self.position,
        }
    }

    /// Where the next record goes.
    #[inline]
    fn place(&self) -> u64 {
        let size = self.shape.size(self.block);
        self.shape.start(self.block) + (self.position & (size - 1))
    }

    /// Where the ring begins anew.
    fn lap_end(&self) -> u64 {
        let size = self.shape.size(self.block);
        (self.position & !(size - 1)) + size
    }

    #[cold]
    fn make_room(&mut self, need: u64, may_wait: bool) -> Result<(), Shortage> {
        self.look()?;
        if self.behind.is_empty() && self.floor == self.position {
            // The receiver keeps up.
            self.patience = if self.patience > 0 { PATIENCE } else { 0 };
        }
        if let Some(block) = self.way_back(need) {
            return self.jump(block, need);
        }
        let size = self.shape.size(self.block);
        let skipped = self.skipped(need);
        let end = self.floor + size - RECORD;
        if self.position + skipped + need <= end {
            self.provide(skipped + need)?;
            if skipped > 0 {
                self.skip();
            }
            return self.clear_up_to(end);
        }
        if let Some(block) = self.way_on(need) {
            if self.shape.size(block) > WARM && self.wait_a_moment(need, may_wait)? {
                return self.make_room(need, may_wait);
            }
            // There may be as much memory as it needs, and not more.
            let least = self.fit(need).next().filter(|least| *least < block);
            return match (self.jump(block, need), least) {
                (Err(Shortage::Memory(_)), Some(least)) => self.jump(least, need),
                (result, _) => result,
            };
        }
        // It would fit into the whole ring, but not between here and the lap's end.
        // Once the receiver has read up to there, it has the whole ring.
        if skipped > 0 && self.position + skipped <= end {
            self.provide(RECORD)?;
            self.skip();
            self.clear = self.position;
            self.publish_early();
        }
        Err(Shortage::Full)
    }

    /// What is left of this lap, if a message does not fit there.
    fn skipped(&self, need: u64) -> u64 {
        let rest = self.lap_end() - self.position;
        if need > rest { rest } else { 0 }
    }

    /// The largest block that is kept, from one that is not: after a flood, since good
    /// memory is that which was used a moment ago; and as soon as what waits has room
    /// there, since any other memory has to be had anew. Not before: a receiver that is
    /// slower than its sender would make them go to and fro, and give back a whole block
    /// each time.
    fn way_back(&self, need: u64) -> Option<u32> {
        if self.shape.keeps(self.block) || !self.behind.is_empty() {
            return None;
        }
        let block = (0..self.block).rfind(|block| self.shape.keeps(*block))?;
        let used = self.position - self.floor;
        let is_over = used <= self.shape.size(self.block) / 16 && self.holds(block, 2 * need);
        let is_better = self.is_provided(block) && used + need <= self.shape.size(block) / 4 * 3;
        (is_over || is_better).then_some(block)
    }

    /// The block that it grows to. Long messages are given more room than they need.
    fn way_on(&self, need: u64) -> Option<u32> {
        let mut fit = self.fit(need);
        if need < Record::most(LONG) {
            return fit.next();
        }
        let is_roomy =
            |block: &u32| self.shape.size(*block) >= WARM || self.holds(*block, ROOMY * need);
        self.fit(need).find(is_roomy).or_else(|| fit.next_back())
    }

    /// The larger blocks that a message could go to, the smallest first.
    fn fit(&self, need: u64) -> impl DoubleEndedIterator<Item = u32> {
        let above = self.block + 1..=self.ceiling;
        above.filter(move |block| self.is_free(*block) && self.holds(*block, need))
    }

    fn is_free(&self, block: u32) -> bool {
        self.behind.iter().all(|behind| behind.block != block)
    }

    /// Whether the receiver has made room here in a moment: half of the ring, or more if
    /// the message needs more.
    fn wait_a_moment(&mut self, need: u64, may_wait: bool) -> Result<bool, Shortage> {
        let size = self.shape.size(self.block);
        let wanted = (self.skipped(need) + need + RECORD).max(size / 2);
        // If it needs more, then not before the receiver has gone on to where the ring
        // begins.
        if wanted > size || self.patience == 0 {
            return Ok(false);
        }
        // What can be read has to be seen.
        if self.publish() {
            return Err(Shortage::Untold);
        }
        let slowly = if may_wait { need / SLOW } else { 0 };
        let rounds = u64::from(self.patience) * (1 + slowly.min(SLOWEST));
        for round in 0..rounds {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
            // It may be that it waits for our processor.
            if round % 8 == 7 {
                std::thread::yield_now();
            }
            self.look()?;
            if self.behind.is_empty() && self.position + wanted <= self.floor + size {
                self.patience = (2 * self.patience).min(PATIENCE);
                return Ok(true);
            }
        }
        // Once in a while it is tried again.
        self.patience = (self.patience / 2).max(self.patience.min(1));
        Ok(false)
    }

    /// Whether a block is large enough for a message, and for a jump behind it.
    fn holds(&self, block: u32, need: u64) -> bool {
        need + RECORD <= self.shape.size(block)
    }

    /// How far the receiver has got.
    fn look(&mut self) -> Result<(), Shortage> {
        let word = self.memory.head();
        if word == self.head {
            return Ok(());
        }
        if word == REFUSED {
            return Err(Shortage::Refused);
        }
        let damaged = Shortage::Damaged(Damage("the receiver has read what is not there"));
        let head = Cursor::of_word(word);
        let published = Cursor::of_word(self.published);
        if head.position > published.position {
            return Err(damaged);
        }
        if head.block == self.block && head.position >= self.floor {
            self.floor = head.position;
            self.behind.clear();
        } else {
            let is_there = |behind: &Behind| {
                behind.block == head.block && (behind.first..=behind.jump).contains(&head.position)
            };
            let Some(at) = self.behind.iter().position(is_there) else {
                return Err(damaged);
            };
            self.behind.drain(..at);
            self.behind[0].first = head.position;
        }
        self.head = word;
        Ok(())
    }

    /// To the beginning of the ring. The record is within what was provided.
    fn skip(&mut self) {
        let record = Record::to_word(Kind::Skip, self.position);
        self.memory.set_record(self.place(), record);
        self.position = self.lap_end();
    }

    /// Goes on in another block, which is free.
    fn jump(&mut self, block: u32, need: u64) -> Result<(), Shortage> {
        // All that may fail comes first: then nothing has happened.
        self.provide(RECORD)?;
        let size = self.shape.size(block);
        let begins = (self.position + RECORD).next_multiple_of(size);
        let ready = match self.is_provided(block) {
            true => begins + size,
            false => {
                let wanted = (need + RECORD).next_multiple_of(self.step(block)).min(size);
                let start = self.shape.start(block);
                self.memory
                    .provide(start, wanted)
                    .map_err(Shortage::Memory)?;
                if wanted == size {
                    self.note_provided(block);
                }
                begins + wanted
            }
        };
        let record = Record::to_word(Kind::Jump(block), self.position);
        self.memory.set_record(self.place(), record);
        self.behind.push(Behind {
            block: self.block,
            first: self.floor,
            jump: self.position,
        });
        self.block = block;
        self.position = begins;
        self.floor = begins;
        self.ready = ready;
        self.entered = begins;
        self.clear_up_to(begins + size - RECORD)
    }

    fn clear_up_to(&mut self, end: u64) -> Result<(), Shortage> {
        self.clear = end.min(self.lap_end()).min(self.ready);
        Ok(())
    }

    fn is_provided(&self, block: u32) -> bool {
        self.provided & 1 << block != 0
    }

    /// A kept block has its memory from now on.
    fn note_provided(&mut self, block: u32) {
        if self.shape.keeps(block) {
            self.provided |= 1 << block;
        }
    }

    /// How much memory is had at a time.
    fn step(&self, block: u32) -> u64 {
        let size = self.shape.size(block);
        match size <= STEP {
            true if self.shape.keeps(block) => size,
            _ => STEP.min(size / 4),
        }
    }

    /// Memory for the next `length` bytes, and for the record of a jump behind
    /// them.
    fn provide(&mut self, length: u64) -> Result<(), Shortage> {
        let size = self.shape.size(self.block);
        let start = self.shape.start(self.block);
        if self.is_provided(self.block) {
            // For this lap and all others.
            self.ready = u64::MAX;
            return Ok(());
        }
        // The receiver gives back what it has read, if that is not kept, so what is
        // behind the floor has no memory, or will have none.
        let free = self.floor + size;
        let wanted = self.position + length + RECORD;
        if wanted.min(free) <= self.ready {
            return Ok(());
        }
        let step = self.step(self.block);
        let until = wanted
            .max(self.ready + step)
            .next_multiple_of(step)
            .min(free);
        let mut from = self.ready;
        while from < until {
            let lap = (from & !(size - 1)) + size;
            let end = until.min(lap);
            self.memory
                .provide(start + (from & (size - 1)), end - from)
                .map_err(Shortage::Memory)?;
            self.ready = end;
            from = end;
        }
        if self.ready - self.entered >= size {
            self.note_provided(self.block);
        }
        Ok(())
    }
}
