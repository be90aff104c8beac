//! Messages that are read where they are.

use std::ops::Deref;

use crate::queue::Receiver;
use crate::queue::lane::Place;

/// A message in the queue's memory. It is received when this is dropped: until
/// then its sender cannot use that memory again. One that was made in room for 1 KiB and
/// more begins at a multiple of 64 bytes.
#[derive(Debug)]
pub struct View<'a> {
    receiver: &'a mut Receiver,
    place: Place,
}

impl<'a> View<'a> {
    pub(super) fn new(receiver: &'a mut Receiver, place: Place) -> View<'a> {
        View { receiver, place }
    }

    /// It was not received, and is the next message again: for who has no memory for a
    /// copy.
    pub fn put_back(self) {
        self.receiver.step_back();
        // To drop it would release it.
        std::mem::forget(self);
    }
}

impl Deref for View<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.receiver.bytes(self.place)
    }
}

impl Drop for View<'_> {
    #[inline]
    fn drop(&mut self) {
        self.receiver.release();
    }
}

/// Messages of one sender, in the queue's memory. They are received when this is
/// dropped.
#[derive(Debug)]
pub struct Batch<'a> {
    receiver: &'a mut Receiver,
    places: Vec<Place>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(receiver: &'a mut Receiver, places: Vec<Place>) -> Batch<'a> {
        Batch { receiver, places }
    }

    /// How many there are; at least one.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// All of them, in the order in which they were sent.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.places.iter().map(|place| self.receiver.bytes(*place))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.receiver.release();
    }
}
