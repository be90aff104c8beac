//! A lane that the receiver reads.

use crate::format::ClaimWord;
use crate::lane::{Damage, LaneReader, MessageSpan};
use crate::shm::LaneMapping;
use crate::wakeup::space;
use procwright_os::robust::wake;

/// A lane that has, or had, a sender.
#[derive(Debug)]
pub(super) struct OpenLane {
    pub(super) reader: LaneReader<LaneMapping>,
    /// The claim when the sender was found to be gone; none as long as it is there.
    /// Messages may be left, and once they are read another sender may have the lane.
    pub(super) left_as: Option<ClaimWord>,
    /// True if the lane was damaged: it is kept until its sender is gone.
    pub(super) is_refused: bool,
}

/// Number of messages of a lane before the next lane is read.
pub(super) const QUOTA: u32 = 256;

impl OpenLane {
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<MessageSpan>, Damage> {
        if self.is_refused {
            return Ok(None);
        }
        let next = self.reader.next();
        if matches!(next, Ok(None)) {
            // The reader may have passed skips and jumps all the same.
            self.release();
        }
        next
    }

    #[inline]
    pub(super) fn release(&mut self) {
        if !self.is_refused && self.reader.release() {
            let memory = self.reader.memory();
            if space::take_waiter(memory.space()) {
                wake(memory.space());
            }
            if self.left_as.is_some() {
                // Who waits for a lane can have this one, if that was the last message.
                memory.tell_lane_freed();
            }
        }
    }

    /// Returns whether a look is worth it.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        !self.is_refused && self.reader.has_more()
    }

    /// Returns whether the lane will carry no more messages.
    pub(super) fn is_finished(&self) -> bool {
        self.left_as.is_some() && (self.is_refused || self.reader.is_at_end())
    }
}
