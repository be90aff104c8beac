//! Offsets, sizes and numbers of locks that are the same in each queue.

/// Alignment of regions: each begins with a page, whatever the size of a page is.
pub(crate) const SECTION: u64 = 64 * 1024;

/// Distance between words that different processors write to: two cache lines, since
/// neighbouring lines are fetched in pairs.
pub(super) const LINE: u64 = 128;

pub(crate) const VERSION: u32 = 1;
pub(crate) const MAGIC: [u8; 8] = *b"pwqueue\0";
/// Byte order, written as a number: a machine of the other order reads another one.
pub(super) const ORDER: u32 = 0x0102_0304;

/// The receiver's page, which the receiver alone writes. It says which of the words behind
/// it, each in a section of its own, tells whether the receiver lives.
pub(crate) const RECEIVER_PAGE: u64 = SECTION;
pub(crate) const LIVENESS: u64 = 2 * SECTION;
/// Number of liveness words. They are used one after the other, so that a process that
/// looks at an old one long after does not take a new one for it.
pub(crate) const LIVENESS_SECTIONS: u64 = 16;
/// A line for each lane, written by the receiver.
pub(super) const LINES: u64 = LIVENESS + LIVENESS_SECTIONS * SECTION;

/// Offsets in the receiver's page. All between `SEQUENCE` and the end is written while
/// `SEQUENCE` is odd, except `STATUS`.
pub(crate) mod page_offsets {
    pub(crate) const SEQUENCE: u64 = 0;
    /// The section of the liveness word, its offset there, and its value while it is held:
    /// 0 if there is no word.
    pub(crate) const WORD_SECTION: u64 = 8;
    pub(crate) const WORD_OFFSET: u64 = 12;
    pub(crate) const WORD_VALUE: u64 = 16;
    /// The receiver's process: number, inode in pidfs, start in clock ticks, pid namespace.
    pub(crate) const PID: u64 = 20;
    pub(crate) const INODE: u64 = 24;
    /// [`OPEN`] or [`CLOSED`].
    pub(crate) const STATUS: u64 = 32;
    /// One more than the number of the descriptor that leads to the receiver's private
    /// socket; 0 if it has none.
    pub(crate) const DOOR: u64 = 36;
    pub(crate) const START: u64 = 40;
    pub(crate) const NAMESPACE: u64 = 48;
    /// Name of the socket where the receiver listens, without the leading 0.
    pub(crate) const NAME: u64 = 64;
    pub(crate) const NAME_LENGTH: usize = 32;
    /// Size of the whole page.
    pub(crate) const SIZE: u64 = NAME + NAME_LENGTH as u64;

    pub(crate) const OPEN: u32 = 1;
    pub(crate) const CLOSED: u32 = 2;
}

/// Offsets in a lane's line: the position up to which the sender may write anew, and the
/// one up to which a receiver that takes over need not read again.
pub(crate) const HEAD: u64 = 0;
pub(crate) const DONE: u64 = 8;

/// Offsets in the region that all processes write to.
pub(crate) const SLEEP: u64 = 0;
pub(crate) const CLAIMS: u64 = LINE;
pub(crate) const GUESTS: u64 = 2 * LINE;
/// The word that senders without a lane sleep on.
pub(crate) const FREED: u64 = 3 * LINE;
pub(super) const CLAIM_STATES: u64 = 1024;

/// Offsets in a lane's page, which its sender alone writes, except `SPACE`, which the
/// receiver sets back.
pub(crate) const TAIL: u64 = 0;
/// The stamp says which message the mailbox has a copy of. Up to `MAILBOX_NEAR_WORDS` words
/// of the mailbox lie in the tail's own cache line, the others in the next one: a receiver
/// that waits for a short message needs no line that it has to look for first.
#[cfg(test)]
pub(super) const STAMP: u64 = TAIL + 8;
#[cfg(test)]
pub(super) const MAILBOX: u64 = TAIL + 16;
pub(crate) const MAILBOX_NEAR_WORDS: usize = 6;
/// Size of the mailbox in words, and in bytes.
pub(crate) const MAILBOX_WORDS: usize = 14;
pub(crate) const MAILBOX_BYTES: usize = 8 * MAILBOX_WORDS;
pub(crate) const SPACE: u64 = LINE;
pub(crate) const PEER: u64 = 2 * LINE;
pub(crate) const PEER_SIZE: u64 = 32;

/// Largest number of lanes: their states fit into a section, and the numbers of their locks
/// into a file.
pub(crate) const MAX_LANES: u32 = 4096;

/// Size of the record in front of each message.
pub(crate) const RECORD_SIZE: u64 = 8;

/// Messages of so many bytes and more begin at a multiple of [`ALIGNMENT`], which is a
/// cache line: a copy to 8 bytes behind one takes three to five times as long (4 KiB and
/// more, AMD EPYC), since each of its stores crosses a boundary of 16 bytes, and the
/// receiver can calculate with an aligned message in place.
pub(crate) const ALIGN_FROM: u64 = 1024;
pub(crate) const ALIGNMENT: u64 = 64;

/// Bytes that are locked (`F_OFD_SETLK`) for as long as the receiver, or a lane's sender,
/// is there. A lock needs no bytes: these lie in the header, and mean nothing else.
pub(crate) const RECEIVER_LOCK: u64 = 0;
pub(crate) fn lane_lock(lane: u32) -> u64 {
    1 + u64::from(lane)
}

/// State of a lane's claim: the lowest two bits of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ClaimState {
    /// Free: the process that gets the lane's lock may take it.
    Free = 0,
    /// Taken by a sender.
    Taken = 1,
    /// Left by its sender. The messages in it are still to be read; once they are, the
    /// receiver clears the lane, or the process that gets its lock takes it as it is.
    Left = 2,
    /// Empty: the receiver is making it as good as new.
    Clearing = 3,
}

/// The word of a lane's claim: its state, and a count of the senders that have had the
/// lane. Any word is one.
///
/// The count is for the receiver, which finds a lane left, reads it to its end, and then
/// clears it: if another sender has had the lane in between, and left it as well, with a
/// message, the word is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimWord(pub(crate) u32);

impl ClaimWord {
    const STATE: u32 = 3;

    pub(crate) fn state(self) -> ClaimState {
        match self.0 & Self::STATE {
            0 => ClaimState::Free,
            1 => ClaimState::Taken,
            2 => ClaimState::Left,
            _ => ClaimState::Clearing,
        }
    }

    /// The word after a change by the sender that has the lane, or by the receiver.
    pub(crate) fn changed_to(self, state: ClaimState) -> ClaimWord {
        ClaimWord(self.0 & !Self::STATE | state as u32)
    }

    /// The word of the next sender.
    pub(crate) fn taken_by_next(self) -> ClaimWord {
        let counted = ClaimWord(self.0.wrapping_add(Self::STATE + 1));
        counted.changed_to(ClaimState::Taken)
    }
}
