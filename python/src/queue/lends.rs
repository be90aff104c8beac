//! The memory that an end of a queue lends, for a message in place.

use std::ptr::NonNull;

use procwright::queue::{Receiver, Reservation, Sender, View};

use super::errors::QueueSide;

/// An end that lends memory.
pub(super) trait LendsMemory: Sized + 'static {
    const SIDE: QueueSide;
    type Lent<'a>;

    /// The memory. It stays where it is, and only the borrower uses it, until it is given
    /// back. A fork does not have it.
    fn area(lent: &mut Self::Lent<'_>) -> NonNull<[u8]>;
}

impl LendsMemory for Receiver {
    const SIDE: QueueSide = QueueSide::Receiver;
    type Lent<'a> = View<'a>;

    fn area(lent: &mut View<'_>) -> NonNull<[u8]> {
        NonNull::from(&**lent)
    }
}

impl LendsMemory for Sender {
    const SIDE: QueueSide = QueueSide::Sender;
    type Lent<'a> = Reservation<'a>;

    fn area(lent: &mut Reservation<'_>) -> NonNull<[u8]> {
        NonNull::from(&mut **lent)
    }
}
