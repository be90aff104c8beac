//! Words in a lane: cursors, records in front of messages, stamps of the mailbox.

use super::geometry::Geometry;
use super::layout::{ALIGN_FROM, ALIGNMENT, MAILBOX_BYTES, RECORD_SIZE};

/// Progress of one end in a lane: a block, and a position. Both are in one word, so that it
/// is never half written, whenever its writer is killed.
///
/// Positions count the bytes of a lane, all its life, and never begin anew: 2^62 of them
/// are fourteen years at ten gigabytes a second. A position's offset in a block is the
/// remainder of its division by the block's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) block: u32,
    /// A multiple of 8.
    pub(crate) position: u64,
}

const POSITION_BITS: u32 = 59;

/// Value of a lane's head when the receiver will not read on: it found that the lane is
/// damaged.
pub(crate) const REFUSED: u64 = u64::MAX;

/// End of all positions: no cursor reaches it.
pub(crate) const POSITION_END: u64 = 1 << 62;

impl Cursor {
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.block) << POSITION_BITS | self.position >> 3
    }

    pub(crate) fn from_word(word: u64) -> Cursor {
        Cursor {
            block: (word >> POSITION_BITS) as u32,
            position: (word & ((1 << POSITION_BITS) - 1)) << 3,
        }
    }

    /// Returns whether the lane has such a position.
    pub(crate) fn is_valid(self, geometry: &Geometry) -> bool {
        self.block < geometry.blocks && self.position < POSITION_END
    }
}

/// Meaning of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A message of so many bytes, which follow.
    Message(u32),
    /// A message of so many bytes, which begins at the next multiple of [`ALIGNMENT`].
    Aligned(u32),
    /// As [`Aligned`](RecordKind::Aligned), but the place of one record is left out behind it.
    Spaced(u32),
    /// No message: reading goes on where the block begins.
    Skip,
    /// No message: reading goes on where another block begins.
    Jump(u32),
}

/// The 8 bytes in front of a message: its length, its kind, and the lowest bits of its
/// position, so that old bytes are not taken for new ones.
///
/// | bits | |
/// |---|---|
/// | 0 to 31 | length of a message, number of the block of a jump, else 0 |
/// | 32 to 39 | 1 a message, 2 skip, 3 jump, 4 a message that is aligned, 5 one that is spaced |
/// | 40 to 47 | 0; room for a class of priority |
/// | 48 to 63 | position / 8 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record;

impl Record {
    pub(crate) fn to_word(kind: RecordKind, position: u64) -> u64 {
        let (length, kind) = match kind {
            RecordKind::Message(length) => (length, 1),
            RecordKind::Skip => (0, 2),
            RecordKind::Jump(block) => (block, 3),
            RecordKind::Aligned(length) => (length, 4),
            RecordKind::Spaced(length) => (length, 5),
        };
        u64::from(length) | kind << 32 | (position >> 3) << 48
    }

    /// The record, or none if no such record can stand at that position.
    pub(crate) fn parse(word: u64, position: u64) -> Option<RecordKind> {
        if word >> 48 != (position >> 3) & 0xffff {
            return None;
        }
        let length = word as u32;
        match (word >> 32) as u16 {
            1 => Some(RecordKind::Message(length)),
            2 if length == 0 => Some(RecordKind::Skip),
            3 => Some(RecordKind::Jump(length)),
            4 => Some(RecordKind::Aligned(length)),
            5 => Some(RecordKind::Spaced(length)),
            _ => None,
        }
    }

    /// Size of a message that begins `gap` behind its record: both, and padding up to the
    /// next multiple of 8.
    #[inline]
    pub(crate) fn size(gap: u64, length: u64) -> u64 {
        gap + length.next_multiple_of(8)
    }

    /// Distance from a record at `position` to an aligned message.
    pub(crate) fn gap(position: u64) -> u64 {
        ALIGNMENT - position % ALIGNMENT
    }

    /// Largest size of a message of this length, wherever its record is.
    #[inline]
    pub(crate) fn max_size(length: u64) -> u64 {
        match length < ALIGN_FROM {
            true => Record::size(RECORD_SIZE, length),
            false => Record::size(ALIGNMENT, length),
        }
    }
}

/// Identity of the message that a lane's mailbox has a copy of: its position, and its
/// length in the lowest 7 bits. A position is a multiple of 8, so it is shifted by 4, and
/// the two bits that are lost are those beyond the first 2^60 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp;

impl Stamp {
    /// The stamp of no message: no short message has this length.
    pub(crate) const NONE: u64 = u64::MAX;
    const LENGTH: u64 = 127;

    pub(crate) fn to_word(length: u64, position: u64) -> u64 {
        position << 4 | length
    }

    /// The length of the message at `position`, if the stamp is that of this message.
    #[inline]
    pub(crate) fn parse(word: u64, position: u64) -> Option<u64> {
        let length = word & Stamp::LENGTH;
        (word & !Stamp::LENGTH == position << 4 && length <= MAILBOX_BYTES as u64).then_some(length)
    }
}
