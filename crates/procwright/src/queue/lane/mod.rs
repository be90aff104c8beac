//! One lane: from one sender to the one receiver, in memory that both see.
//!
//! Nothing here knows what that memory is, so that a test can be the memory: it counts
//! every store, stops the sender after any of them, or goes through all orders in which
//! two processors can see them. Nor does anything sleep; a sender may look for a moment
//! whether the receiver makes room.
//!
//! # How it grows
//!
//! A lane is a window of blocks, each twice as large as the one before. Inside a
//! block it is an ordinary ring, so that little memory is used over and over.
//! When the ring is full, the sender writes a record that says in which free block
//! it goes on, and goes on there, at its beginning; the receiver follows. No lock,
//! no compare-and-swap, no other mapping: who may write to a block follows from
//! how far the receiver has got. When there is little to read, the sender goes
//! back to a smaller block in the same way.
//!
//! # What is visible
//!
//! What a sender writes is visible when it stores the tail, which is one store
//! for any number of messages. A sender that dies before leaves nothing to
//! repair.

mod consumer;
#[cfg(all(test, not(procwright_loom)))]
mod heap;
#[cfg(all(test, procwright_loom))]
mod loom_tests;
mod producer;
#[cfg(all(test, not(procwright_loom)))]
mod tests;

use std::io;

pub(crate) use consumer::Consumer;
pub(crate) use producer::{Producer, Shortage};

/// The memory of a lane: two cursors and a window.
///
/// Places are counted from the beginning of the window. What is asked for lies
/// within it, and records at multiples of 8: the two ends check what they read
/// before they ask.
pub(crate) trait Memory {
    /// The sender's cursor, with acquire: what was written before it was stored is
    /// seen.
    fn tail(&self) -> u64;
    /// With release.
    fn set_tail(&self, word: u64);
    /// The receiver's cursor, with acquire.
    fn head(&self) -> u64;
    /// With release.
    fn set_head(&self, word: u64);
    /// Up to where a receiver that takes over need not read again.
    fn done(&self) -> u64;
    fn set_done(&self, word: u64);

    /// Whether the sender waits for room.
    fn is_awaited(&self) -> bool;

    /// The record at `place`, relaxed.
    fn record(&self, place: u64) -> u64;
    fn set_record(&self, place: u64, word: u64);

    /// The mailbox, beside the tail: whose bytes are in it, relaxed.
    fn stamp(&self) -> u64;
    fn set_stamp(&self, stamp: u64);
    /// One of its words, relaxed. `at` is below
    /// [`MAILBOX`](crate::queue::format::MAILBOX).
    fn mail(&self, at: usize) -> u64;

    /// Writes a short message, in words, relaxed: into the mailbox, and to `place`.
    fn post(&self, place: u64, bytes: &[u8]);

    fn copy_in(&self, place: u64, bytes: &[u8]);

    /// Makes sure that there is memory: a later write does not fail for want of
    /// it.
    ///
    /// # Errors
    /// When there is none.
    fn provide(&self, place: u64, length: u64) -> io::Result<()>;

    /// Gives memory back; what was there is lost.
    fn discard(&self, place: u64, length: u64);
}

/// Each word of a message with its two places, which there are for all of them; what is
/// behind its end is 0.
#[inline(always)]
pub(crate) fn each_word<A, B>(
    bytes: &[u8],
    these: &[A],
    those: &[B],
    mut put: impl FnMut(&A, &B, u64),
) {
    let (whole, rest) = bytes.as_chunks::<8>();
    // In memory they lie as they were, whatever the machine's order is.
    for ((word, this), that) in whole.iter().zip(these).zip(those) {
        put(this, that, u64::from_ne_bytes(*word));
    }
    if rest.is_empty() {
        return;
    }
    // Not a copy of so many bytes, which is a call.
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

/// Where a message's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: u64,
    pub(crate) length: u64,
}

/// What the other end has left is no lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) &'static str);
