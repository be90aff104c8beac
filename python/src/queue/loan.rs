//! Messages in a queue's memory, together with the end that they are of.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use procwright::queue::{Receiver, Reservation, Sender, View};

use super::end::{End, Use};
use super::errors::Side;

/// An end that lends memory.
pub(super) trait Lends: Sized + 'static {
    const SIDE: Side;
    type Lent<'a>;

    /// Where it is: it stays there, and nobody but the borrower uses it, until it is
    /// given back. Not in a fork.
    fn area(lent: &mut Self::Lent<'_>) -> NonNull<[u8]>;
}

impl Lends for Receiver {
    const SIDE: Side = Side::Receiver;
    type Lent<'a> = View<'a>;

    fn area(lent: &mut View<'_>) -> NonNull<[u8]> {
        NonNull::from(&**lent)
    }
}

impl Lends for Sender {
    const SIDE: Side = Side::Sender;
    type Lent<'a> = Reservation<'a>;

    fn area(lent: &mut Reservation<'_>) -> NonNull<[u8]> {
        NonNull::from(&mut **lent)
    }
}

/// What an end has lent, together with the end. In this order they are dropped.
pub(super) struct Loan<E: Deref<Target = End<T>>, T: Lends> {
    pub(super) lent: T::Lent<'static>,
    pub(super) of: Use<E, T>,
}

/// One that is kept.
pub(super) type Kept<T> = Loan<Arc<End<T>>, T>;

impl<E: Deref<Target = End<Receiver>>> Loan<E, Receiver> {
    /// It was not received, and is the next message again.
    pub(super) fn put_back(self) -> Use<E, Receiver> {
        self.lent.put_back();
        self.of
    }

    /// It was.
    pub(super) fn receive(self) -> Use<E, Receiver> {
        drop(self.lent);
        self.of
    }
}
