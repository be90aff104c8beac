//! A message that is made in place.

use std::ops::{Deref, DerefMut};

use crate::queue::Sender;
use crate::queue::lane::Place;

/// Room for a message in the queue's memory: see [`Sender::reserve`].
///
/// Its bytes are whatever was there before. Room for 1 KiB and more begins at a multiple
/// of 64 bytes, here and where it is received.
#[derive(Debug)]
pub struct Reservation<'a> {
    sender: &'a mut Sender,
    place: Place,
}

impl<'a> Reservation<'a> {
    pub(super) fn new(sender: &'a mut Sender, place: Place) -> Reservation<'a> {
        Reservation { sender, place }
    }

    /// Sends it.
    pub fn commit(self) {
        self.sender.commit(self.place, self.place.length as usize);
    }

    /// Sends its first `length` bytes, or all of them if there are no more.
    pub fn commit_first(self, length: usize) {
        let length = length.min(self.place.length as usize);
        self.sender.commit(self.place, length);
    }
}

impl Deref for Reservation<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // Not as mutable: any number of these may be there at a time.
        self.sender.memory_here().bytes(self.place)
    }
}

impl DerefMut for Reservation<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.sender.memory_here().bytes_mut(self.place)
    }
}
