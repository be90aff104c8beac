//! The receiver's end.

use super::{Damage, Memory, Place};
use crate::queue::format::{Cursor, FARTHEST, Geometry, Kind, RECORD, REFUSED, Record};

/// Reads a lane. All that it relies on is its own; each word of the sender's is
/// read once, and is checked before it is used.
#[derive(Debug)]
pub(crate) struct Consumer<M> {
    memory: M,
    shape: Geometry,
    block: u32,
    /// Of the next record.
    position: u64,
    /// Of the sender, when it was last looked at.
    tail: Cursor,
    /// Blocks on the way to there, a bit each: a way that comes back to one of
    /// them does not end.
    passed: u32,
    /// In this block the sender has been told to here. What is in it ends at most
    /// its size further on.
    floor: u64,
    /// Blocks that were left since the sender was told.
    left: u32,
}

/// The sender is told after so much at the latest, and in a block whose memory is
/// not kept so much is given back at once.
const SWEEP: u64 = 1024 * 1024;

impl<M: Memory> Consumer<M> {
    /// The receiver's end, from where the last receiver has got.
    ///
    /// # Errors
    /// If there is no such place.
    pub(crate) fn new(memory: M, shape: Geometry) -> Result<Consumer<M>, Damage> {
        let head = Cursor::of_word(memory.head());
        let done = Cursor::of_word(memory.done());
        let begin = match done.position > head.position {
            true => done,
            false => head,
        };
        if !begin.is_valid(&shape) {
            return Err(Damage("the last receiver has left no place to go on"));
        }
        if begin != head {
            // Killed before it could tell the sender. What it gave back is gone.
            memory.set_head(begin.to_word());
        }
        Ok(Consumer {
            memory,
            shape,
            block: begin.block,
            position: begin.position,
            tail: begin,
            passed: 1 << begin.block,
            floor: begin.position,
            left: 0,
        })
    }

    /// That of a lane which the last receiver has refused to read: nothing is read.
    pub(crate) fn refused(memory: M, shape: Geometry) -> Consumer<M> {
        let begin = Cursor {
            block: 0,
            position: 0,
        };
        Consumer {
            memory,
            shape,
            block: 0,
            position: 0,
            tail: begin,
            passed: 1,
            floor: 0,
            left: 0,
        }
    }

    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Where the next message is. It is there until it is released.
    ///
    /// The work is bounded by the size of the window, whatever the sender has
    /// written there.
    ///
    /// # Errors
    /// If what the sender has left is no lane. It will not get better.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Place>, Damage> {
        loop {
            if self.position == self.tail.position && !self.look()? {
                return Ok(None);
            }
            let size = self.shape.size(self.block);
            let offset = self.position & (size - 1);
            let place = self.shape.start(self.block) + offset;
            let lap = size - offset;
            let until = self.tail.position.min(self.floor + size) - self.position;
            let kind = match until {
                // It ends in the middle of a block that is not that of the tail.
                0 => None,
                _ => Record::parse(self.memory.record(place), self.position),
            };
            match kind {
                Some(Kind::Message(length)) => {
                    let length = u64::from(length);
                    let need = Record::takes(length);
                    if need > lap.min(until) {
                        return Err(Damage("a message is longer than its place"));
                    }
                    self.position += need;
                    let at = place + RECORD;
                    return Ok(Some(Place { at, length }));
                }
                Some(Kind::Skip) if lap <= until => self.position += lap,
                Some(Kind::Jump(block)) => self.jump(block)?,
                _ => return Err(Damage("there is no message where one begins")),
            }
        }
    }

    /// Whether there is a next message. It stays the next.
    ///
    /// # Errors
    /// As [`next`](Consumer::next), which will say so again.
    pub(crate) fn has_next(&mut self) -> Result<bool, Damage> {
        let was = (self.block, self.position, self.tail);
        let (passed, floor, left) = (self.passed, self.floor, self.left);
        let next = self.next();
        (self.block, self.position, self.tail) = was;
        (self.passed, self.floor, self.left) = (passed, floor, left);
        Ok(next?.is_some())
    }

    /// Looks how far the sender has got; whether there is more.
    #[inline]
    fn look(&mut self) -> Result<bool, Damage> {
        if self.block != self.tail.block {
            return Err(Damage("the sender is in a block that leads nowhere"));
        }
        let tail = Cursor::of_word(self.memory.tail());
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

    #[cold]
    fn jump(&mut self, block: u32) -> Result<(), Damage> {
        if block >= self.shape.blocks() || self.passed & 1 << block != 0 {
            return Err(Damage("a jump leads nowhere"));
        }
        let size = self.shape.size(block);
        let begins = (self.position + RECORD).next_multiple_of(size);
        if begins > self.tail.position {
            return Err(Damage("a jump leads beyond the sender"));
        }
        self.left |= 1 << self.block;
        self.passed |= 1 << block;
        self.block = block;
        self.position = begins;
        self.floor = begins;
        Ok(())
    }

    /// Whether all was read, as far as was last looked.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position == self.tail.position
    }

    /// What was handed out is not needed any more. The sender is told now and
    /// then: when the lane is empty, and before it has to wait for it. Says
    /// whether it was.
    #[inline]
    pub(crate) fn release(&mut self) -> bool {
        let often = (self.shape.size(self.block) / 8).min(SWEEP);
        let is_new = self.position != self.floor || self.left != 0;
        if is_new {
            // Before the sender is told, which is not often: whoever takes over must
            // not receive it again. The sender looks at that line when it is told.
            self.memory.set_done(self.here().to_word());
        }
        if is_new && (self.is_at_end() || self.left != 0 || self.position - self.floor >= often) {
            self.tell();
            return true;
        }
        false
    }

    fn here(&self) -> Cursor {
        Cursor {
            block: self.block,
            position: self.position,
        }
    }

    fn tell(&mut self) {
        let head = self.here();
        if self.left != 0 || !self.shape.keeps(self.block) {
            // Not while it sends: it would have to get the same memory again, which
            // costs more than all else. When it goes back to a small block, it
            // leaves all of this one.
            let has_moved = self.memory.tail() != self.tail.to_word();
            let rests = !has_moved && !self.memory.is_awaited();
            if rests || self.left != 0 {
                self.give_back(rests);
            }
        }
        self.floor = self.position;
        self.memory.set_head(head.to_word());
    }

    /// Gives back the memory of what the sender does not know to be read yet: where
    /// it knows, it may write.
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

    /// The sender is told that nobody will read this lane.
    pub(crate) fn refuse(&self) {
        self.memory.set_head(REFUSED);
    }

    /// Makes the lane as good as new, for the next sender. It is empty or refused,
    /// its sender is gone, and no other has come.
    pub(crate) fn clear(memory: &M, shape: &Geometry) {
        // Not where somebody has been: what is old there has another position.
        let known = [memory.head(), memory.done(), memory.tail()].map(Cursor::of_word);
        let valid = known.iter().filter(|cursor| cursor.is_valid(shape));
        let last = valid.map(|cursor| cursor.position).max().unwrap_or(0);
        // Nobody has written so much: that is nonsense which was left, and the next
        // sender would soon be where no cursor is.
        let last = if last < FARTHEST / 2 { last } else { 0 };
        let begin = Cursor {
            block: 0,
            position: last.next_multiple_of(shape.size(0)),
        };
        memory.discard(0, shape.window());
        // In any order: whoever is killed in between has said before that it is
        // doing this, and the next one does it again.
        memory.set_tail(begin.to_word());
        memory.set_done(begin.to_word());
        memory.set_head(begin.to_word());
    }
}
