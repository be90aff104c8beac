//! Messages that are read where they are.

use std::ops::Deref;

use super::Receiver;
use crate::lane::MessageSpan;

/// A message in the queue's memory. Dropping the view receives it: until then its sender
/// cannot use that memory again. A message for which room of 1 KiB or more was made begins
/// at a multiple of 64 bytes.
#[derive(Debug)]
pub struct View<'a> {
    receiver: &'a mut Receiver,
    span: MessageSpan,
}

impl<'a> View<'a> {
    pub(super) fn new(receiver: &'a mut Receiver, span: MessageSpan) -> View<'a> {
        View { receiver, span }
    }

    /// Makes the message the next one again: it was not received. For callers that have no
    /// memory for a copy.
    pub fn put_back(self) {
        self.receiver.step_back();
        // A drop would release the message.
        std::mem::forget(self);
    }
}

impl Deref for View<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.receiver.bytes(self.span)
    }
}

impl Drop for View<'_> {
    #[inline]
    fn drop(&mut self) {
        self.receiver.release();
    }
}

/// Messages of one sender, in the queue's memory. Dropping the batch receives them.
#[derive(Debug)]
pub struct Batch<'a> {
    receiver: &'a mut Receiver,
    spans: Vec<MessageSpan>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(receiver: &'a mut Receiver, spans: Vec<MessageSpan>) -> Batch<'a> {
        Batch { receiver, spans }
    }

    /// Number of messages; at least one.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The messages, in the order in which they were sent.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.spans.iter().map(|span| self.receiver.bytes(*span))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.receiver.release();
    }
}
