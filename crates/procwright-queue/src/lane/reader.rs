//! The receiver's end of a lane.

use std::array;

use super::{Damage, LaneMemory, MessageSpan};
use crate::format::{
    Cursor, Geometry, MAILBOX_NEAR_WORDS, MAILBOX_WORDS, POSITION_END, RECORD_SIZE, REFUSED,
    Record, RecordKind, Stamp,
};
use procwright_os::sync::{Ordering, fence};

/// Reads a lane. All that it relies on is its own; each word of the sender's is read once,
/// and is checked before it is used.
#[derive(Debug)]
pub(crate) struct LaneReader<M> {
    memory: M,
    shape: Geometry,
    block: u32,
    /// Positions of the next record, and of the one whose message was handed out last.
    position: u64,
    before: u64,
    /// The sender's cursor, when it was last read.
    tail: Cursor,
    /// Blocks on the way to the tail, a bit each: a way that comes back to one of them does
    /// not end.
    passed: u32,
    /// Position in this block up to which the sender knows that all was read. The block
    /// holds at most its size beyond that.
    floor: u64,
    /// Blocks that were left since the head was published, a bit each.
    left: u32,
    /// End of what can be read without another look at shared memory: the nearest of the
    /// tail, of the lap's end, and of what the sender can have written in this block.
    clear: u64,
    /// Distance from a position before `clear` to its offset in the window.
    shift: u64,
    /// Position from which on the head is published.
    mark: u64,
    /// Content of the mailbox when it was found to be that of a message, and that message's
    /// offset.
    mail: [[u8; 8]; MAILBOX_WORDS],
    mailed: u64,
}

/// Place that a message takes.
#[derive(Clone, Copy)]
struct Place {
    /// Distance from its record to its bytes.
    gap: u64,
    length: u64,
    /// Distance from its record to the next one.
    size: u64,
}

/// Offset of no message.
const NOWHERE: u64 = u64::MAX;

/// The head is published after so many bytes at the latest, and in a block whose memory is
/// not kept so many are given back at once.
const MAX_UNTOLD: u64 = 1024 * 1024;

impl<M: LaneMemory> LaneReader<M> {
    /// The receiver's end, from where the last receiver has got.
    ///
    /// # Errors
    /// If there is no such position.
    pub(crate) fn new(memory: M, shape: Geometry) -> Result<LaneReader<M>, Damage> {
        let head = Cursor::from_word(memory.head());
        let done = Cursor::from_word(memory.done());
        let begin = match done.position > head.position {
            true => done,
            false => head,
        };
        if !begin.is_valid(&shape) {
            return Err(Damage("the last receiver has left no place to go on"));
        }
        if begin != head {
            // The last receiver was killed before it could publish its head. The memory up
            // to `done` may be gone.
            memory.set_head(begin.to_word());
        }
        Ok(LaneReader {
            memory,
            shape,
            block: begin.block,
            position: begin.position,
            before: begin.position,
            tail: begin,
            passed: 1 << begin.block,
            floor: begin.position,
            left: 0,
            clear: begin.position,
            shift: 0,
            mark: 0,
            mail: [[0; 8]; MAILBOX_WORDS],
            mailed: NOWHERE,
        })
    }

    /// The end of a lane that the last receiver has refused to read: nothing is read.
    pub(crate) fn refused(memory: M, shape: Geometry) -> LaneReader<M> {
        let begin = Cursor {
            block: 0,
            position: 0,
        };
        LaneReader {
            memory,
            shape,
            block: 0,
            position: 0,
            before: 0,
            tail: begin,
            passed: 1,
            floor: 0,
            left: 0,
            clear: 0,
            shift: 0,
            mark: 0,
            mail: [[0; 8]; MAILBOX_WORDS],
            mailed: NOWHERE,
        }
    }

    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// The next message, if nothing has to be checked for it: it lies before `clear`, or is
    /// in the mailbox. Else none, and nothing has happened.
    #[inline(always)]
    pub(crate) fn next_fast(&mut self) -> Option<MessageSpan> {
        if self.position == self.tail.position {
            return self.next_in_mailbox();
        }
        if self.position >= self.clear {
            return None;
        }
        let offset = self.position.wrapping_add(self.shift);
        debug_assert_eq!(offset, self.offset());
        let kind = Record::parse(self.memory.record(offset), self.position)?;
        let place = self.place(kind)?;
        (place.size <= self.clear - self.position).then(|| self.hand_out(offset, place))
    }

    /// The place of the next record's message, if the record is one of a message.
    #[inline(always)]
    fn place(&self, kind: RecordKind) -> Option<Place> {
        let (gap, length, space) = match kind {
            RecordKind::Message(length) => (RECORD_SIZE, length, 0),
            RecordKind::Aligned(length) => (Record::gap(self.position), length, 0),
            RecordKind::Spaced(length) => (Record::gap(self.position), length, RECORD_SIZE),
            _ => return None,
        };
        let length = length.into();
        let size = Record::size(gap, length) + space;
        Some(Place { gap, length, size })
    }

    #[inline(always)]
    fn hand_out(&mut self, offset: u64, place: Place) -> MessageSpan {
        self.before = self.position;
        self.position += place.size;
        // The mailbox may have a message that had this offset before.
        self.mailed = NOWHERE;
        MessageSpan {
            at: offset + place.gap,
            length: place.length,
        }
    }

    /// The next message, if it is in the mailbox: then the cache line of the tail, and for
    /// a longer message the next one, is all that is looked at. The sender may be writing
    /// the next message there meanwhile; this one is in the ring all the same.
    ///
    /// The stamp is read as that of a seqlock:
    /// 1. The tail is loaded with acquire, so the stamp is no older than that of the last
    ///    message before it.
    /// 2. The stamp and the bytes are loaded, relaxed.
    /// 3. The acquire fence keeps these loads before the second load of the stamp. It pairs
    ///    with the writer's release fence between its stamp and its bytes: if one of the
    ///    bytes loaded is of a later message, the second load sees a later stamp.
    #[inline(always)]
    fn next_in_mailbox(&mut self) -> Option<MessageSpan> {
        let tail = self.memory.tail();
        // The distance is in units of 8. In another block it is much more.
        let shown = tail.wrapping_sub(self.tail.to_word());
        let stamp = self.memory.stamp();
        let length = Stamp::parse(stamp, self.position)?;
        let near: [u64; MAILBOX_NEAR_WORDS] = array::from_fn(|at| self.memory.mail(at));
        let is_far = length > 8 * MAILBOX_NEAR_WORDS as u64;
        let far: Option<[u64; MAILBOX_WORDS - MAILBOX_NEAR_WORDS]> =
            is_far.then(|| array::from_fn(|at| self.memory.mail(MAILBOX_NEAR_WORDS + at)));
        // A byte of another message means that the stamp is another now.
        fence(Ordering::Acquire);
        let need = Record::size(RECORD_SIZE, length);
        if self.memory.stamp() != stamp
            || shown != need / 8
            || need > self.lap_end() - self.position
        {
            return None;
        }
        let offset = self.offset();
        let place = Place {
            gap: RECORD_SIZE,
            length,
            size: need,
        };
        let found = self.hand_out(offset, place);
        self.tail.position = self.position;
        let (first, rest) = self.mail.split_at_mut(MAILBOX_NEAR_WORDS);
        first.copy_from_slice(&near.map(u64::to_ne_bytes));
        if let Some(far) = far {
            rest.copy_from_slice(&far.map(u64::to_ne_bytes));
        }
        self.mailed = found.at;
        Some(found)
    }

    /// The bytes of a message that was found in the mailbox, if it was the last one found
    /// there.
    #[inline]
    pub(crate) fn mail(&self, span: MessageSpan) -> Option<&[u8]> {
        match span.at == self.mailed {
            true => self.mail.as_flattened().get(..span.length as usize),
            false => None,
        }
    }

    /// Offset of the next record in the window.
    #[inline]
    fn offset(&self) -> u64 {
        let size = self.shape.size(self.block);
        self.shape.start(self.block) + (self.position & (size - 1))
    }

    /// Position where the ring begins anew.
    #[inline]
    fn lap_end(&self) -> u64 {
        let size = self.shape.size(self.block);
        (self.position & !(size - 1)) + size
    }

    /// The next message. It stays where it is until it is released.
    ///
    /// The work is bounded by the size of the window, whatever the sender has written
    /// there.
    ///
    /// # Errors
    /// If the lane is damaged. It stays so.
    pub(crate) fn next(&mut self) -> Result<Option<MessageSpan>, Damage> {
        loop {
            if let Some(offset) = self.next_fast() {
                return Ok(Some(offset));
            }
            if self.position == self.tail.position && !self.read_tail()? {
                return Ok(None);
            }
            let size = self.shape.size(self.block);
            let (offset, lap_end) = (self.offset(), self.lap_end());
            let lap = lap_end - self.position;
            // A spaced message ends a record's size beyond what is in use else, and a jump
            // may follow it.
            let seen = self.tail.position.min(self.floor + size + 2 * RECORD_SIZE);
            // Messages in the mailbox are not checked against what was released. So a
            // sender that writes over unreleased ones may have led this end further than
            // `seen`, and the difference would be negative.
            let until = seen.saturating_sub(self.position);
            self.clear = seen.min(lap_end);
            self.shift = offset.wrapping_sub(self.position);
            let kind = match until {
                // The records lead to the end of what was written, in a block that is not
                // the tail's: they are damaged.
                0 => None,
                _ => Record::parse(self.memory.record(offset), self.position),
            };
            if let Some(place) = kind.and_then(|kind| self.place(kind)) {
                if place.size > lap.min(until) {
                    return Err(Damage("a message is longer than its place"));
                }
                return Ok(Some(self.hand_out(offset, place)));
            }
            match kind {
                Some(RecordKind::Skip) if lap <= until => self.position += lap,
                Some(RecordKind::Jump(block)) => self.jump(block)?,
                _ => return Err(Damage("there is no message where one begins")),
            }
        }
    }

    /// Returns whether there is a next message. It stays the next. If there is none, skips
    /// and jumps may have been passed all the same, as in [`next`](LaneReader::next): up to
    /// where the sender waits for this end.
    ///
    /// # Errors
    /// As [`next`](LaneReader::next), which will report it again.
    pub(crate) fn has_next(&mut self) -> Result<bool, Damage> {
        let was = (self.block, self.position, self.tail);
        let (passed, floor, left) = (self.passed, self.floor, self.left);
        // `clear` and `shift` belong to the position, too: with those of another lap or
        // block the next record would be looked for at another offset.
        let (clear, shift) = (self.clear, self.shift);
        let next = self.next();
        if next == Ok(None) {
            return Ok(false);
        }
        (self.block, self.position, self.tail) = was;
        (self.passed, self.floor, self.left) = (passed, floor, left);
        (self.clear, self.shift) = (clear, shift);
        next.map(|_| true)
    }

    /// Makes the message that was handed out last, and not released, the next one again.
    /// The skips and jumps in front of it stay behind.
    pub(crate) fn step_back(&mut self) {
        self.position = self.before;
        // The message is in the ring in any case.
        self.mailed = NOWHERE;
    }

    /// Reads the sender's cursor. Whether there is more.
    fn read_tail(&mut self) -> Result<bool, Damage> {
        if self.block != self.tail.block {
            return Err(Damage("the sender is in a block that leads nowhere"));
        }
        let tail = Cursor::from_word(self.memory.tail());
        if tail == self.tail {
            return Ok(false);
        }
        if !tail.is_valid(&self.shape) || tail.position <= self.position {
            return Err(Damage("the sender is where it cannot be"));
        }
        self.tail = tail;
        self.passed = 1 << self.block;
        Ok(true)
    }

    /// Returns whether a look is worth it. There may be more than was seen, or some of that
    /// is left because the lane's quota was used up.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        !self.is_at_end() || self.memory.tail() != self.tail.to_word()
    }

    #[cold]
    fn jump(&mut self, block: u32) -> Result<(), Damage> {
        if block >= self.shape.blocks() || self.passed & 1 << block != 0 {
            return Err(Damage("a jump leads nowhere"));
        }
        let size = self.shape.size(block);
        let begins = (self.position + RECORD_SIZE).next_multiple_of(size);
        if begins > self.tail.position {
            return Err(Damage("a jump leads beyond the sender"));
        }
        self.left |= 1 << self.block;
        self.passed |= 1 << block;
        self.block = block;
        self.position = begins;
        self.floor = begins;
        // `begins` may lie before what was clear in the block that is left.
        self.clear = begins;
        // The next release tells the sender of the block at once.
        self.mark = 0;
        Ok(())
    }

    /// Returns whether all up to the last known tail was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position == self.tail.position
    }

    /// Gives up all that was handed out. The head is published now and then: when the lane
    /// is empty, and before the sender has to wait for it. Says whether it was.
    #[inline]
    pub(crate) fn release(&mut self) -> bool {
        if self.position == self.floor && self.left == 0 {
            return false;
        }
        // `done` comes before the head, which is stored less often: a receiver that takes
        // over must not receive these messages again. The sender looks at that cache line
        // when the head changes.
        self.memory.set_done(self.here().to_word());
        let is_due = self.position >= self.mark || self.is_at_end();
        if is_due {
            self.publish_head();
        }
        is_due
    }

    #[inline]
    fn here(&self) -> Cursor {
        Cursor {
            block: self.block,
            position: self.position,
        }
    }

    #[inline]
    fn publish_head(&mut self) {
        let head = self.here();
        if self.left != 0 || !self.shape.keeps(self.block) {
            // A sender that is sending would have to get the same memory again, which costs
            // more than all else. When it goes back to a small block, it leaves all of this
            // one.
            let has_moved = self.memory.tail() != self.tail.to_word();
            let rests = !has_moved && !self.memory.is_awaited();
            if rests || self.left != 0 {
                self.give_back(rests);
            }
        }
        self.floor = self.position;
        self.mark = self.floor + (self.shape.size(self.block) / 8).min(MAX_UNTOLD);
        self.memory.set_head(head.to_word());
    }

    /// Gives back memory of what the sender does not know to be read yet, and so does not
    /// write to.
    #[cold]
    fn give_back(&mut self, rests: bool) {
        for block in 0..self.shape.blocks() {
            if self.left & 1 << block != 0 && !self.shape.keeps(block) {
                self.memory
                    .discard(self.shape.start(block), self.shape.size(block));
            }
        }
        self.left = 0;
        if !rests || self.shape.keeps(self.block) {
            return;
        }
        let (start, size) = (self.shape.start(self.block), self.shape.size(self.block));
        // Whole pages, of whatever size.
        let mut from = self.floor.next_multiple_of(self.shape.grain());
        let until = self.position & !(self.shape.grain() - 1);
        while from < until {
            let lap = (from & !(size - 1)) + size;
            let end = until.min(lap);
            self.memory.discard(start + (from & (size - 1)), end - from);
            from = end;
        }
    }

    /// Tells the sender that this lane will not be read any more.
    pub(crate) fn refuse(&self) {
        self.memory.set_head(REFUSED);
    }

    /// Makes the lane as good as new, for the next sender. The lane is empty or refused,
    /// its sender is gone, and no other has come.
    pub(crate) fn clear(memory: &M, shape: &Geometry) {
        // Positions go on behind all old ones: what is left in the blocks has other
        // positions.
        let known = [memory.head(), memory.done(), memory.tail()].map(Cursor::from_word);
        let valid = known.iter().filter(|cursor| cursor.is_valid(shape));
        let last = valid.map(|cursor| cursor.position).max().unwrap_or(0);
        // No sender writes that much: this position is nonsense, and from it the next
        // sender would soon be where no cursor is.
        let last = if last < POSITION_END / 2 { last } else { 0 };
        let begin = Cursor {
            block: 0,
            position: last.next_multiple_of(shape.size(0)),
        };
        memory.discard(0, shape.window());
        // The order does not matter: the lane's state says that it is being cleared, and if
        // this process is killed in between, the next receiver does it again.
        memory.set_tail(begin.to_word());
        memory.set_done(begin.to_word());
        memory.set_head(begin.to_word());
    }
}
