//! A message that is made in place.

use std::ops::{Deref, DerefMut};

use super::Sender;
use crate::error::Error;
use crate::lane::MessageSpan;

/// Room for a message in the queue's memory: see [`Sender::reserve`].
///
/// The bytes are whatever was there before. Room for 1 KiB and more begins at a multiple of
/// 64 bytes, here and where it is received.
#[derive(Debug)]
pub struct Reservation<'a> {
    sender: &'a mut Sender,
    span: MessageSpan,
}

impl Sender {
    /// Reserves room for a message of `length` bytes, to be made in place, without a copy.
    /// The message is sent when it is [committed](Reservation::commit); if the room is
    /// dropped, nothing was sent.
    ///
    /// # Blocking
    /// As [`send`](Sender::send).
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::Full`] also under
    /// [`Overflow::DropNewest`](crate::Overflow::DropNewest).
    pub fn reserve(&mut self, length: usize) -> Result<Reservation<'_>, Error> {
        let span = match self.span(length, self.blocks())? {
            Some(span) => span,
            None => self.overflow_span(length)?.ok_or(Error::Full)?,
        };
        Ok(Reservation::new(self, span))
    }

    fn commit(&mut self, span: MessageSpan, length: usize) {
        self.memory_checked();
        self.writer.finish(span, length as u64);
        self.publish();
    }
}

impl<'a> Reservation<'a> {
    pub(super) fn new(sender: &'a mut Sender, span: MessageSpan) -> Reservation<'a> {
        Reservation { sender, span }
    }

    /// Sends the message.
    pub fn commit(self) {
        self.sender.commit(self.span, self.span.length as usize);
    }

    /// Sends the first `length` bytes of the message, or all of them if there are no more.
    pub fn commit_first(self, length: usize) {
        let length = length.min(self.span.length as usize);
        self.sender.commit(self.span, length);
    }
}

impl Deref for Reservation<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // A shared slice, not the mutable one: any number of these may exist at a time.
        self.sender.memory_checked().bytes(self.span)
    }
}

impl DerefMut for Reservation<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.sender.memory_checked().bytes_mut(self.span)
    }
}
