//! The sender's end of a lane.

mod room;

use std::io;

use super::{Damage, LaneMemory, MessageSpan};
use crate::format::{
    ALIGN_FROM, ALIGNMENT, Cursor, Geometry, MAILBOX_BYTES, RECORD_SIZE, REFUSED, Record,
    RecordKind, Stamp,
};
use procwright_os::sync::{Ordering, fence};

/// Reason why no room was reserved.
#[derive(Debug)]
pub(crate) enum ReserveError {
    /// The receiver has to read first, and the lane may not grow further. The receiver may
    /// have to be woken: what it has to read may be no message.
    Full,
    /// No memory is left.
    OutOfMemory(io::Error),
    /// The receiver has found damage and reads this lane no more.
    Refused,
    /// The receiver's head makes no sense.
    Damaged(Damage),
    /// A wait for a moment would be worth it, but messages were shown of which the receiver
    /// was not told: one that sleeps makes no room. The caller is to wake it and try again.
    WakeFirst,
}

/// A block that the receiver has not left yet.
#[derive(Clone, Copy, Debug)]
struct UnreadBlock {
    block: u32,
    /// Bounds of its content: the first position that may not be read yet, and that of the
    /// jump.
    first: u64,
    jump: u64,
}

/// Writes to a lane. All that it relies on is its own; of the receiver it reads the head
/// alone, and never trusts it.
#[derive(Debug)]
pub(crate) struct LaneWriter<M> {
    memory: M,
    shape: Geometry,
    /// The last block that the lane may grow to.
    last_block: u32,
    block: u32,
    /// Position of the next record.
    position: u64,
    /// End of what can be written without another look at shared memory: the nearest of
    /// the lap's end, of what the receiver has yet to read, and of what has memory.
    clear: u64,
    /// First position in this block that may not be overwritten.
    floor: u64,
    /// Position of the last skip.
    skip: u64,
    /// End of the memory that this block has.
    provided_to: u64,
    /// Position where this block was entered.
    entered: u64,
    /// Bytes from its start for which each block has memory. 0 where it is not kept.
    provided: Vec<u64>,
    /// The tail that the receiver sees.
    published: u64,
    /// True if messages were shown on the way to room, and the receiver was not woken for
    /// them.
    must_wake: bool,
    /// Blocks before this one that are not read yet, the oldest first. Never more than
    /// there are blocks, so it allocates once.
    behind: Vec<UnreadBlock>,
    head: u64,
    /// Number of rounds that are worth spending before the lane grows over
    /// `CACHE_FRIENDLY`.
    spin_rounds: u32,
}

impl<M: LaneMemory> LaneWriter<M> {
    /// The sender's end of a lane that is empty, and that no other sender has.
    ///
    /// # Errors
    /// If it is not empty.
    pub(crate) fn new(memory: M, shape: Geometry) -> Result<LaneWriter<M>, Damage> {
        let word = memory.tail();
        let cursor = Cursor::from_word(word);
        if memory.head() != word || !cursor.is_valid(&shape) {
            return Err(Damage("the lane is not empty"));
        }
        // The last sender may have been killed when it had written the stamp of a message
        // that was never shown.
        memory.set_stamp(Stamp::NONE);
        Ok(LaneWriter {
            memory,
            shape,
            last_block: shape.blocks() - 1,
            block: cursor.block,
            position: cursor.position,
            clear: cursor.position,
            floor: cursor.position,
            skip: u64::MAX,
            provided_to: cursor.position,
            entered: cursor.position,
            provided: vec![0; shape.blocks() as usize],
            published: word,
            must_wake: false,
            behind: Vec::with_capacity(shape.blocks() as usize),
            head: word,
            spin_rounds: 0,
        })
    }

    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Sets the size of the largest block that the lane grows to.
    pub(crate) fn set_limit(&mut self, bytes: u64) {
        let last = (0..self.shape.blocks()).rev();
        let fits = last.clone().find(|block| self.shape.size(*block) <= bytes);
        self.last_block = fits.unwrap_or(0);
    }

    /// Returns whether the next sender may begin where this one is: nothing is in the lane
    /// that the receiver has to read or has lent. A lane that has grown is the receiver's
    /// to clear, which alone can let a sender begin in the first block again.
    pub(crate) fn is_reusable(&self) -> bool {
        let cursor = self.cursor();
        cursor.block == 0
            && cursor.to_word() == self.published
            && self.memory.head() == self.published
    }

    /// Gives the memory of a lane back that is [reusable](Self::is_reusable): nobody reads
    /// behind the tail, and the next sender gets memory for what it writes.
    pub(crate) fn give_back(&self) {
        self.memory.discard(0, self.shape.window());
    }

    /// Returns whether this sender has had memory for messages.
    pub(crate) fn has_memory(&self) -> bool {
        self.provided_to != self.entered
    }

    /// The longest message that can ever be sent: the largest block, less its own record
    /// and the room that is kept for a jump.
    pub(crate) fn longest(&self) -> u64 {
        let most = self.shape.size(self.last_block.max(self.block)) - RECORD_SIZE;
        match most < Record::max_size(ALIGN_FROM) {
            true => most - RECORD_SIZE,
            false => most - ALIGNMENT,
        }
    }

    /// Writes a message's bytes to the span that is reserved.
    #[inline]
    pub(crate) fn fill(&self, span: MessageSpan, bytes: &[u8]) {
        self.memory.copy_in(span.at, bytes);
    }

    /// Completes the message in that span, with this length, which is at most the reserved
    /// one. The receiver does not see it yet.
    #[inline]
    pub(crate) fn finish(&mut self, span: MessageSpan, length: u64) {
        let start = self.offset();
        let end = self.position + Record::size(span.at - start, length);
        // A span is no longer than a gibibyte.
        let (kind, next) = match span.length < ALIGN_FROM {
            true => (RecordKind::Message(length as u32), end),
            false if self.is_taken(end) => (RecordKind::Spaced(length as u32), end + RECORD_SIZE),
            false => (RecordKind::Aligned(length as u32), end),
        };
        let record = Record::to_word(kind, self.position);
        self.memory.set_record(start, record);
        self.position = next;
    }

    /// Returns whether the place of a record at that position is one that has to be read
    /// first: only behind a message that has [begun anew](Self::begins_anew).
    #[inline]
    fn is_taken(&self, position: u64) -> bool {
        position + RECORD_SIZE > self.floor + self.shape.size(self.block)
    }

    /// Shows the receiver all that is finished: one store. Says whether anything was shown
    /// since the last call: then a receiver that sleeps is to be woken.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        let word = self.cursor().to_word();
        let is_new = word != self.published;
        if is_new {
            self.published = word;
            self.memory.set_tail(word);
        }
        is_new | std::mem::take(&mut self.must_wake)
    }

    /// Writes a short message and shows it with all that is finished, if there is room at
    /// once; says whether. A receiver that waits for it needs no more than the cache line
    /// that it looks at: the mailbox has the same bytes.
    #[inline]
    pub(crate) fn send_short(&mut self, bytes: &[u8]) -> bool {
        let length = bytes.len() as u64;
        let need = Record::size(RECORD_SIZE, length);
        if bytes.len() > MAILBOX_BYTES || self.position + need > self.clear {
            return false;
        }
        let offset = self.offset();
        self.memory.set_stamp(Stamp::to_word(length, self.position));
        // Release: a reader that sees one of these bytes sees the new stamp as well, when
        // it loads that again.
        fence(Ordering::Release);
        let at = offset + RECORD_SIZE;
        self.memory.post(at, bytes);
        const {
            assert!(
                MAILBOX_BYTES < ALIGN_FROM as usize,
                "a short message follows its record"
            )
        };
        self.finish(MessageSpan { at, length }, length);
        self.publish();
        true
    }

    /// Shows all that is finished, on the way to room. The receiver is to be woken for it,
    /// whether room is found or not.
    fn publish_early(&mut self) {
        self.must_wake = self.publish();
    }

    /// The end of all that is finished, shown or not.
    #[inline]
    pub(super) fn cursor(&self) -> Cursor {
        Cursor {
            block: self.block,
            position: self.position,
        }
    }

    /// Offset of the next record in the window.
    #[inline]
    fn offset(&self) -> u64 {
        let size = self.shape.size(self.block);
        self.shape.start(self.block) + (self.position & (size - 1))
    }

    /// Position where the ring begins anew.
    fn lap_end(&self) -> u64 {
        let size = self.shape.size(self.block);
        (self.position & !(size - 1)) + size
    }

    /// Reads how far the receiver has got.
    fn read_head(&mut self) -> Result<(), ReserveError> {
        let word = self.memory.head();
        if word == self.head {
            return Ok(());
        }
        if word == REFUSED {
            return Err(ReserveError::Refused);
        }
        let damaged = ReserveError::Damaged(Damage("the receiver has read what is not there"));
        let head = Cursor::from_word(word);
        let published = Cursor::from_word(self.published);
        if head.position > published.position {
            return Err(damaged);
        }
        if head.block == self.block && head.position >= self.floor {
            self.floor = head.position;
            self.behind.clear();
        } else {
            let is_there = |behind: &UnreadBlock| {
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
}
