//! The receiver's end.

use std::array;

use super::{Damage, Memory, Place};
use crate::queue::format::{
    Cursor, FARTHEST, Geometry, Kind, MAILBOX, NEAR, RECORD, REFUSED, Record, Stamp,
};
use crate::sync::{Ordering, fence};

/// Reads a lane. All that it relies on is its own; each word of the sender's is
/// read once, and is checked before it is used.
#[derive(Debug)]
pub(crate) struct Consumer<M> {
    memory: M,
    shape: Geometry,
    block: u32,
    /// Of the next record, and of that whose message was handed out last.
    position: u64,
    before: u64,
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
    /// Up to here messages can be read without another look: the tail, the lap's end
    /// and what the sender may not have passed are all behind it.
    clear: u64,
    /// From a position before that to its place.
    shift: u64,
    /// From here on the sender is told.
    mark: u64,
    /// What was in the mailbox when it was found to be that of a message, and the
    /// place of that one.
    mail: [[u8; 8]; MAILBOX],
    mailed: u64,
}

/// No place.
const NOWHERE: u64 = u64::MAX;

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
            before: begin.position,
            tail: begin,
            passed: 1 << begin.block,
            floor: begin.position,
            left: 0,
            clear: begin.position,
            shift: 0,
            mark: 0,
            mail: [[0; 8]; MAILBOX],
            mailed: NOWHERE,
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
            before: 0,
            tail: begin,
            passed: 1,
            floor: 0,
            left: 0,
            clear: 0,
            shift: 0,
            mark: 0,
            mail: [[0; 8]; MAILBOX],
            mailed: NOWHERE,
        }
    }

    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// The next message, if there is no doubt about it: it lies on the way that was
    /// looked at, or is in the mailbox. Else none, and nothing has happened.
    #[inline(always)]
    pub(crate) fn next_at_once(&mut self) -> Option<Place> {
        if self.position == self.tail.position {
            return self.open_mailbox();
        }
        if self.position >= self.clear {
            return None;
        }
        let place = self.position.wrapping_add(self.shift);
        debug_assert_eq!(place, self.place());
        let kind = Record::parse(self.memory.record(place), self.position)?;
        let (gap, length) = self.message(kind)?;
        let need = Record::takes(gap, length);
        (need <= self.clear - self.position).then(|| self.hand_out(place, gap, length))
    }

    /// From the record that is next to its message, and how long that is, if it is one.
    #[inline(always)]
    fn message(&self, kind: Kind) -> Option<(u64, u64)> {
        match kind {
            Kind::Message(length) => Some((RECORD, length.into())),
            Kind::Aligned(length) => Some((Record::gap(self.position), length.into())),
            _ => None,
        }
    }

    #[inline(always)]
    fn hand_out(&mut self, place: u64, gap: u64, length: u64) -> Place {
        self.before = self.position;
        self.position += Record::takes(gap, length);
        // What had this place before may have been in the mailbox.
        self.mailed = NOWHERE;
        let at = place + gap;
        Place { at, length }
    }

    /// The next message, if it is in the mailbox: then the line that has the tail, and for
    /// a longer one the next, is all that is looked at. The sender may be writing the
    /// next one there meanwhile; this one is in its place in the ring all the same.
    #[inline(always)]
    fn open_mailbox(&mut self) -> Option<Place> {
        let tail = self.memory.tail();
        // In units of 8, and in the same block, or it is much more.
        let shown = tail.wrapping_sub(self.tail.to_word());
        let stamp = self.memory.stamp();
        let length = Stamp::parse(stamp, self.position)?;
        let near: [u64; NEAR] = array::from_fn(|at| self.memory.mail(at));
        let is_far = length > 8 * NEAR as u64;
        let far: Option<[u64; MAILBOX - NEAR]> =
            is_far.then(|| array::from_fn(|at| self.memory.mail(NEAR + at)));
        // If one of these bytes was another's, the stamp is another's now.
        fence(Ordering::Acquire);
        let need = Record::takes(RECORD, length);
        if self.memory.stamp() != stamp
            || shown != need / 8
            || need > self.lap_end() - self.position
        {
            return None;
        }
        let place = self.place();
        let found = self.hand_out(place, RECORD, length);
        self.tail.position = self.position;
        let (first, rest) = self.mail.split_at_mut(NEAR);
        first.copy_from_slice(&near.map(u64::to_ne_bytes));
        if let Some(far) = far {
            rest.copy_from_slice(&far.map(u64::to_ne_bytes));
        }
        self.mailed = found.at;
        Some(found)
    }

    /// The bytes of a message that was found in the mailbox, if it was the last that
    /// was.
    #[inline]
    pub(crate) fn mail(&self, place: Place) -> Option<&[u8]> {
        match place.at == self.mailed {
            true => self.mail.as_flattened().get(..place.length as usize),
            false => None,
        }
    }

    /// Where the next record is.
    #[inline]
    fn place(&self) -> u64 {
        let size = self.shape.size(self.block);
        self.shape.start(self.block) + (self.position & (size - 1))
    }

    /// Where the ring begins anew.
    #[inline]
    fn lap_end(&self) -> u64 {
        let size = self.shape.size(self.block);
        (self.position & !(size - 1)) + size
    }

    /// Where the next message is. It is there until it is released.
    ///
    /// The work is bounded by the size of the window, whatever the sender has
    /// written there.
    ///
    /// # Errors
    /// If what the sender has left is no lane. It will not get better.
    pub(crate) fn next(&mut self) -> Result<Option<Place>, Damage> {
        loop {
            if let Some(place) = self.next_at_once() {
                return Ok(Some(place));
            }
            if self.position == self.tail.position && !self.look()? {
                return Ok(None);
            }
            let size = self.shape.size(self.block);
            let (place, lap_end) = (self.place(), self.lap_end());
            let lap = lap_end - self.position;
            let seen = self.tail.position.min(self.floor + size);
            // Not less than nothing: what is in the mailbox is not held to what has been
            // released, so a sender that writes over that has led further.
            let until = seen.saturating_sub(self.position);
            self.clear = seen.min(lap_end);
            self.shift = place.wrapping_sub(self.position);
            let kind = match until {
                // It ends in the middle of a block that is not that of the tail.
                0 => None,
                _ => Record::parse(self.memory.record(place), self.position),
            };
            if let Some((gap, length)) = kind.and_then(|kind| self.message(kind)) {
                if Record::takes(gap, length) > lap.min(until) {
                    return Err(Damage("a message is longer than its place"));
                }
                return Ok(Some(self.hand_out(place, gap, length)));
            }
            match kind {
                Some(Kind::Skip) if lap <= until => self.position += lap,
                Some(Kind::Jump(block)) => self.jump(block)?,
                _ => return Err(Damage("there is no message where one begins")),
            }
        }
    }

    /// Whether there is a next message. It stays the next. If there is none, it may have
    /// gone on all the same, as [`next`](Consumer::next) does: to where the sender waits
    /// for it.
    ///
    /// # Errors
    /// As [`next`](Consumer::next), which will say so again.
    pub(crate) fn has_next(&mut self) -> Result<bool, Damage> {
        let was = (self.block, self.position, self.tail);
        let (passed, floor, left) = (self.passed, self.floor, self.left);
        // These are of where it is, too: with those of another lap or block the next
        // record would be looked for in another place.
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

    /// What was handed out last, and not released, is the next message again. The skips
    /// and jumps in front of it stay behind us.
    pub(crate) fn step_back(&mut self) {
        self.position = self.before;
        // It is in the ring in any case.
        self.mailed = NOWHERE;
    }

    /// Looks how far the sender has got; whether there is more.
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

    /// Whether it is worth to look. There may be more than was looked at, or some of that
    /// is left: the lane's turn was over.
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
        let begins = (self.position + RECORD).next_multiple_of(size);
        if begins > self.tail.position {
            return Err(Damage("a jump leads beyond the sender"));
        }
        self.left |= 1 << self.block;
        self.passed |= 1 << block;
        self.block = block;
        self.position = begins;
        self.floor = begins;
        // That may lie before what was clear in the block that is left.
        self.clear = begins;
        // So that the sender is told of the block at once.
        self.mark = 0;
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
        if self.position == self.floor && self.left == 0 {
            return false;
        }
        // Before the sender is told, which is not often: whoever takes over must
        // not receive it again. The sender looks at that line when it is told.
        self.memory.set_done(self.here().to_word());
        let is_due = self.position >= self.mark || self.is_at_end();
        if is_due {
            self.tell();
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
        self.mark = self.floor + (self.shape.size(self.block) / 8).min(SWEEP);
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
