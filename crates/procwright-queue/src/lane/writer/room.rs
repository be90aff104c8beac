//! Room for a message: here, in the next lap, in another block, or after a moment of
//! waiting for the receiver.

use super::{LaneWriter, ReserveError, UnreadBlock};
use crate::format::{ALIGN_FROM, RECORD_SIZE, Record, RecordKind};
use crate::lane::{LaneMemory, MessageSpan};

/// Largest number of rounds: 60 µs where a pause takes 27 ns.
const MAX_SPIN_ROUNDS: u32 = 64;

/// Above this size a lane takes more of the caches than is good for the others: with four
/// senders of 1 KiB a third, with four of 64 KiB a tenth as many messages go through where
/// all of them may grow at once. Up to this size long messages get a block with room for
/// [`MESSAGES_PER_BLOCK`] of their like: lines that come back at once are in both
/// processors' own caches, and the sender waits for each until the other has let it go (64
/// KiB there and back take 20 µs in 128 KiB, 12 in 1 MiB, 7 in 2 MiB, 7 to 9 in 4 and 8:
/// AMD EPYC with 1 MiB of L2 each and an L3 for both).
const CACHE_FRIENDLY: u64 = 2 * 1024 * 1024;
const MESSAGES_PER_BLOCK: u64 = 32;

/// Room for so many like it is what a long message gets while the receiver keeps up: new
/// memory is what makes the first messages of a lane slow, and a ring goes through all of its
/// block, however little of that is in use.
const FEW_MESSAGES: u64 = 2;

/// A block for many, of up to [`CACHE_FRIENDLY`] bytes, has paid for its memory when so many
/// times its size has been sent: 45 µs for a place of 64 KiB, which makes each message 0.4 to
/// 3 µs quicker.
const PAID_LAPS: u64 = 64;

/// Bytes for which as many rounds again are worth it: a longer message takes longer to be
/// read, and memory for another one takes longer to get.
const EXTRA_SPIN_BYTES: u64 = 64 * 1024;
/// Limit of these additional rounds: 4 ms.
const MAX_EXTRA_SPINS: u64 = 63;

/// Size in which memory is provided: few system calls, and little memory that is not used.
const PROVIDE_STEP: u64 = 1024 * 1024;

impl<M: LaneMemory> LaneWriter<M> {
    /// Lets the lane wait a moment for a receiver that is about to make room, before it
    /// grows over what fits into the caches.
    pub(crate) fn enable_spinning(&mut self) {
        self.spin_rounds = MAX_SPIN_ROUNDS;
    }

    /// Room for a message: the span that it is to be written to. The span stays the same
    /// until it is finished. If the caller `may_wait`, it waits longer with long messages.
    ///
    /// # Errors
    /// If there is none now. `length` is at most [`longest`](Self::longest).
    #[inline]
    pub(crate) fn reserve(
        &mut self,
        length: u64,
        may_wait: bool,
    ) -> Result<MessageSpan, ReserveError> {
        let need = Record::max_size(length);
        if self.position + need > self.clear {
            self.make_room(need, may_wait)?;
        }
        let gap = match length < ALIGN_FROM {
            true => RECORD_SIZE,
            false => Record::gap(self.position),
        };
        Ok(MessageSpan {
            at: self.offset() + gap,
            length,
        })
    }

    #[cold]
    fn make_room(&mut self, need: u64, may_wait: bool) -> Result<(), ReserveError> {
        self.read_head()?;
        if self.behind.is_empty() && self.floor == self.position {
            // The receiver keeps up.
            self.spin_rounds = if self.spin_rounds > 0 {
                MAX_SPIN_ROUNDS
            } else {
                0
            };
        }
        if let Some(block) = self.smaller_block(need) {
            return self.jump(block, need);
        }
        if self.begins_anew(need) {
            return Ok(());
        }
        let size = self.shape.size(self.block);
        let skipped = self.skipped(need);
        let warm = self.warm_block(skipped + need, need);
        let better = warm.or_else(|| self.paid_block(need));
        // Without memory for it there is room here.
        if better.is_some_and(|block| self.jump(block, need).is_ok()) {
            return Ok(());
        }
        let end = self.floor + size - RECORD_SIZE;
        if self.position + skipped + need <= end {
            self.provide(skipped + need)?;
            if skipped > 0 {
                self.skip();
            }
            return self.set_clear(end);
        }
        if let Some(block) = self.larger_block(need) {
            if self.shape.size(block) > CACHE_FRIENDLY && self.spin_for_room(need, may_wait)? {
                return self.make_room(need, may_wait);
            }
            // Memory may be left for the smallest block that fits, and not for this one.
            let least = self
                .blocks_that_fit(need)
                .next()
                .filter(|least| *least < block);
            return match (self.jump(block, need), least) {
                (Err(ReserveError::OutOfMemory(_)), Some(least)) => self.jump(least, need),
                (result, _) => result,
            };
        }
        // The message would fit into the whole ring, but not between here and the lap's
        // end. Once the receiver has read up to there, the whole ring is free.
        if skipped > 0 && self.position + skipped <= end {
            self.provide(RECORD_SIZE)?;
            self.skip();
            self.clear = self.position;
            self.publish_early();
        }
        Err(ReserveError::Full)
    }

    /// Rest of this lap, if a message does not fit there.
    fn skipped(&self, need: u64) -> u64 {
        let rest = self.lap_end() - self.position;
        if need > rest { rest } else { 0 }
    }

    /// The largest kept block, to go back to from one that is not kept: after a flood,
    /// since memory that was used a moment ago is fastest; and as soon as the waiting
    /// messages have room there, since any other memory has to be had anew. Not before:
    /// with a receiver that is slower than its sender the lane would go to and fro, and
    /// give back a whole block each time.
    fn smaller_block(&self, need: u64) -> Option<u32> {
        if self.shape.keeps(self.block) || !self.behind.is_empty() {
            return None;
        }
        let block = (0..self.block).rfind(|block| self.shape.keeps(*block))?;
        let used = self.position - self.floor;
        let is_over = used <= self.shape.size(self.block) / 16 && self.holds(block, 2 * need);
        let is_better = self.is_provided(block) && used + need <= self.shape.size(block) / 4 * 3;
        (is_over || is_better).then_some(block)
    }

    /// Returns whether the receiver has read all that was sent, when last looked.
    fn keeps_up(&self) -> bool {
        self.behind.is_empty() && self.floor == self.position
    }

    /// Begins the ring anew for a long message that does not fit into the rest of the lap, while
    /// the receiver keeps up and so long as the message ends before the skip that leads there: in
    /// a block with room for one such message this one place is in use then, and no other block.
    /// Says whether it did.
    ///
    /// The next record's place is that of the skip if all messages have one length, and the
    /// skip is not read yet. So it comes one record later then, where nothing is, since what
    /// is skipped is not in use.
    fn begins_anew(&mut self, need: u64) -> bool {
        let size = self.shape.size(self.block);
        let skip = match self.keeps_up() {
            true if self.skipped(need) > 0 => self.position,
            // The room was reserved, and nothing was sent.
            false if self.is_anew() => self.skip,
            _ => return false,
        };
        let at = skip & (size - 1);
        let has_memory = at + 2 * RECORD_SIZE <= self.provided[self.block as usize];
        if need <= CACHE_FRIENDLY / 2 || need > at || !has_memory {
            return false;
        }
        if self.position == skip {
            self.skip();
            self.entered = self.position;
            self.provided_to = self.position + self.provided[self.block as usize];
        }
        true
    }

    /// Returns whether nothing is in the lane but a skip that leads here.
    fn is_anew(&self) -> bool {
        let begins = self.position.is_multiple_of(self.shape.size(self.block));
        begins && self.behind.is_empty() && self.floor == self.skip
    }

    /// A block that has memory for the message at its beginning, in place of new memory here,
    /// for messages of which only a few fit into the caches.
    fn warm_block(&self, wanted: u64, need: u64) -> Option<u32> {
        let is_there = self.position + wanted + RECORD_SIZE <= self.provided_to;
        let is_long = self.shape.size(self.block) > CACHE_FRIENDLY || need > CACHE_FRIENDLY / 2;
        if is_there || !is_long || self.is_provided(self.block) || !self.keeps_up() {
            return None;
        }
        let is_warm = |block: &u32| need + RECORD_SIZE <= self.provided[*block as usize];
        (0..=self.last_block)
            .filter(|block| *block != self.block)
            .find(is_warm)
    }

    /// The block for many, from one for a few, when enough was sent to pay for it.
    fn paid_block(&self, need: u64) -> Option<u32> {
        let is_for_few = !self.holds(self.block, 2 * FEW_MESSAGES * need);
        if !is_for_few || need < Record::max_size(ALIGN_FROM) || !self.keeps_up() {
            return None;
        }
        let block = self.block_for_many(need)?;
        let size = self.shape.size(block);
        let is_paid = self.position - self.entered >= PAID_LAPS * size;
        (is_paid && size <= CACHE_FRIENDLY && self.shape.keeps(block)).then_some(block)
    }

    /// The block to grow to. Long messages are given more room than they need: for a few
    /// while the receiver keeps up, for many when some wait.
    fn larger_block(&self, need: u64) -> Option<u32> {
        let mut fit = self.blocks_that_fit(need);
        if need < Record::max_size(ALIGN_FROM) {
            return fit.next();
        }
        let is_for_few = |block: &u32| {
            self.shape.size(*block) < CACHE_FRIENDLY && self.holds(*block, FEW_MESSAGES * need)
        };
        let few = fit.find(is_for_few).filter(|_| self.keeps_up());
        few.or_else(|| self.block_for_many(need))
            .or_else(|| self.blocks_that_fit(need).next_back())
    }

    /// The smallest block for many, or of the size that the caches like.
    fn block_for_many(&self, need: u64) -> Option<u32> {
        let is_roomy = |block: &u32| {
            self.shape.size(*block) >= CACHE_FRIENDLY
                || self.holds(*block, MESSAGES_PER_BLOCK * need)
        };
        self.blocks_that_fit(need).find(is_roomy)
    }

    /// The larger blocks that a message could go to, the smallest first.
    fn blocks_that_fit(&self, need: u64) -> impl DoubleEndedIterator<Item = u32> {
        let above = self.block + 1..=self.last_block;
        above.filter(move |block| self.is_free(*block) && self.holds(*block, need))
    }

    fn is_free(&self, block: u32) -> bool {
        self.behind.iter().all(|behind| behind.block != block)
    }

    /// Returns whether the receiver has made room here in a moment: half of the ring, or
    /// more if the message needs more.
    fn spin_for_room(&mut self, need: u64, may_wait: bool) -> Result<bool, ReserveError> {
        let size = self.shape.size(self.block);
        let wanted = (self.skipped(need) + need + RECORD_SIZE).max(size / 2);
        // A message that needs more has to wait until the receiver has passed the lap's
        // end.
        if wanted > size || self.spin_rounds == 0 {
            return Ok(false);
        }
        // The receiver has to see all that it could read.
        if self.publish() {
            return Err(ReserveError::WakeFirst);
        }
        let slowly = if may_wait { need / EXTRA_SPIN_BYTES } else { 0 };
        let rounds = u64::from(self.spin_rounds) * (1 + slowly.min(MAX_EXTRA_SPINS));
        for round in 0..rounds {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
            // The receiver may be waiting for this processor.
            if round % 8 == 7 {
                std::thread::yield_now();
            }
            self.read_head()?;
            if self.behind.is_empty() && self.position + wanted <= self.floor + size {
                self.spin_rounds = (2 * self.spin_rounds).min(MAX_SPIN_ROUNDS);
                return Ok(true);
            }
        }
        // One round is left, to try again once in a while.
        self.spin_rounds = (self.spin_rounds / 2).max(self.spin_rounds.min(1));
        Ok(false)
    }

    /// Returns whether a block is large enough for a message, and for a jump behind it.
    fn holds(&self, block: u32, need: u64) -> bool {
        need + RECORD_SIZE <= self.shape.size(block)
    }

    /// Goes to the beginning of the ring. The record has memory already.
    fn skip(&mut self) {
        let record = Record::to_word(RecordKind::Skip, self.position);
        self.memory.set_record(self.offset(), record);
        self.skip = self.position;
        self.position = self.lap_end();
    }

    /// Goes on in another block, which is free.
    fn jump(&mut self, block: u32, need: u64) -> Result<(), ReserveError> {
        // Calls that may fail come first: then nothing has happened.
        self.provide(RECORD_SIZE)?;
        let size = self.shape.size(block);
        let begins = (self.position + RECORD_SIZE).next_multiple_of(size);
        let mut provided = self.provided[block as usize];
        if provided < need + RECORD_SIZE {
            provided = (need + RECORD_SIZE)
                .next_multiple_of(self.step(block))
                .min(size);
            let start = self.shape.start(block);
            self.memory
                .provide(start, provided)
                .map_err(ReserveError::OutOfMemory)?;
            self.note_provided(block, provided);
        }
        let record = Record::to_word(RecordKind::Jump(block), self.position);
        self.memory.set_record(self.offset(), record);
        self.behind.push(UnreadBlock {
            block: self.block,
            first: self.floor,
            jump: self.position,
        });
        self.block = block;
        self.position = begins;
        self.floor = begins;
        self.provided_to = begins + provided;
        self.entered = begins;
        self.set_clear(begins + size - RECORD_SIZE)
    }

    fn set_clear(&mut self, end: u64) -> Result<(), ReserveError> {
        self.clear = end.min(self.lap_end()).min(self.provided_to);
        Ok(())
    }

    /// Returns whether all of a block has memory, for this lap and all others.
    fn is_provided(&self, block: u32) -> bool {
        self.provided[block as usize] == self.shape.size(block)
    }

    /// Notes that a block has memory up to there. It stays if the block is kept.
    fn note_provided(&mut self, block: u32, bytes: u64) {
        if self.shape.keeps(block) {
            let provided = &mut self.provided[block as usize];
            *provided = bytes.clamp(*provided, self.shape.size(block));
        }
    }

    /// Size in which a block gets memory.
    fn step(&self, block: u32) -> u64 {
        let size = self.shape.size(block);
        match size <= PROVIDE_STEP {
            true if self.shape.keeps(block) => size,
            _ => PROVIDE_STEP.min(size / 4),
        }
    }

    /// Provides memory for the next `length` bytes, and for the record of a jump behind
    /// them.
    fn provide(&mut self, length: u64) -> Result<(), ReserveError> {
        let size = self.shape.size(self.block);
        let start = self.shape.start(self.block);
        if self.is_provided(self.block) {
            // The memory is there for this lap and all others.
            self.provided_to = u64::MAX;
            return Ok(());
        }
        // The receiver gives back what it has read, if the block is not kept. So what is
        // behind the floor has no memory, or will have none.
        let free = self.floor + size;
        let wanted = self.position + length + RECORD_SIZE;
        if wanted.min(free) <= self.provided_to {
            return Ok(());
        }
        let step = self.step(self.block);
        let until = wanted
            .max(self.provided_to + step)
            .next_multiple_of(step)
            .min(free);
        let mut from = self.provided_to;
        while from < until {
            let lap = (from & !(size - 1)) + size;
            let end = until.min(lap);
            self.memory
                .provide(start + (from & (size - 1)), end - from)
                .map_err(ReserveError::OutOfMemory)?;
            self.provided_to = end;
            from = end;
        }
        // Memory from the block's start on, or all around it.
        let provided = self.provided_to - self.entered;
        if self.entered.is_multiple_of(size) || provided >= size {
            self.note_provided(self.block, provided);
        }
        Ok(())
    }
}
