//! One lane: from one sender to the one receiver, in memory that both see.
//!
//! Nothing here knows what that memory is, so that a test can be the memory: it counts
//! every store, stops the sender after any of them, or goes through all orders in which two
//! processors can see them. Nothing sleeps, either; a sender may look for a moment whether
//! the receiver makes room.
//!
//! Layers, lowest first: [`LaneMemory`] here; `reader` and `writer`, which do not know each
//! other.
//!
//! # Growth
//!
//! A lane is a window of blocks, each twice as large as the one before. Inside a block it
//! is an ordinary ring, so that little memory is used over and over. When the ring is full,
//! the sender writes a record that says in which free block it goes on, and goes on there,
//! at its beginning; the receiver follows. No lock, no compare-and-swap, no other mapping:
//! which blocks the sender may write to follows from how far the receiver has got. When
//! there is little to read, the sender goes back to a smaller block in the same way.
//!
//! # Visibility
//!
//! Messages become visible when the sender stores the tail, which is one store for any
//! number of messages. A sender that dies before that leaves nothing to repair.

#[cfg(all(test, procwright_loom))]
mod loom_tests;
mod reader;
#[cfg(all(test, not(procwright_loom)))]
mod tests;
mod writer;

use std::io;

pub(crate) use reader::LaneReader;
pub(crate) use writer::{LaneWriter, ReserveError};

/// The memory of a lane: two cursors and a window.
///
/// Offsets are counted from the beginning of the window. All that is asked for lies within
/// it, and records at multiples of 8: the two ends check what they read before they ask.
pub(crate) trait LaneMemory {
    /// The sender's cursor. Acquire: all that the sender wrote before it stored this is
    /// seen.
    fn tail(&self) -> u64;
    /// Stores the sender's cursor. Release: a receiver that sees it sees the messages
    /// before it.
    fn set_tail(&self, word: u64);
    /// The receiver's cursor. Acquire: the receiver's loads of what it has read are over
    /// before the sender writes there anew.
    fn head(&self) -> u64;
    /// Stores the receiver's cursor. Release: all loads of the messages before it are done.
    fn set_head(&self, word: u64);
    /// Cursor up to which a receiver that takes over need not read again.
    fn done(&self) -> u64;
    fn set_done(&self, word: u64);

    /// Returns whether the sender waits for room. A hint, and relaxed.
    fn is_awaited(&self) -> bool;

    /// The record at `offset`. Relaxed: the tail's acquire has ordered it.
    fn record(&self, offset: u64) -> u64;
    fn set_record(&self, offset: u64, word: u64);

    /// The stamp of the mailbox. Relaxed: fences order it against the bytes.
    fn stamp(&self) -> u64;
    fn set_stamp(&self, stamp: u64);
    /// A word of the mailbox, relaxed. `at` is below
    /// [`MAILBOX_WORDS`](crate::format::MAILBOX_WORDS).
    fn mail(&self, at: usize) -> u64;

    /// Writes a short message into the mailbox, and to `offset`, in words. Relaxed: the tail
    /// that is stored behind it orders the latter, the fence behind the stamp the former.
    fn post(&self, offset: u64, bytes: &[u8]);

    fn copy_in(&self, offset: u64, bytes: &[u8]);

    /// Makes sure that there is memory: a later write does not fail for want of it.
    ///
    /// # Errors
    /// When there is none.
    fn provide(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Gives memory back; its content is lost.
    fn discard(&self, offset: u64, length: u64);
}

/// Calls `put` with each word of a message and its two destinations, of which there are
/// enough for all words. The rest of the last word is 0.
#[inline(always)]
pub(crate) fn each_word<A, B>(
    bytes: &[u8],
    these: &[A],
    those: &[B],
    mut put: impl FnMut(&A, &B, u64),
) {
    let (whole, rest) = bytes.as_chunks::<8>();
    // Native order leaves the bytes in memory as they were, on any machine.
    for ((word, this), that) in whole.iter().zip(these).zip(those) {
        put(this, that, u64::from_ne_bytes(*word));
    }
    if rest.is_empty() {
        return;
    }
    // A shift in place of a copy of so many bytes, which would be a call.
    let last = match bytes.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - rest.len())),
        None => {
            let bytes = rest.iter().rev();
            bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
        }
    };
    if let (Some(this), Some(that)) = (these.get(whole.len()), those.get(whole.len())) {
        put(this, that, last.to_le());
    }
}

/// Location of a message's bytes in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageSpan {
    pub(crate) at: u64,
    pub(crate) length: u64,
}

/// Nonsense that the other end has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) &'static str);
