//! What gets a receiver out of a long sleep.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;

use procwright::queue::{Error, Receiver};

use super::end::{End, Use};

/// The number of a receiver's descriptor, once somebody has slept on it. Not asked for
/// each time: it then tells at once, of what may be there already.
#[derive(Default)]
pub(super) struct Door(OnceLock<RawFd>);

impl Door {
    /// The descriptor, which tells of messages and of a close.
    pub(super) fn of<'a, E>(&self, used: &'a mut Use<E, Receiver>) -> Result<BorrowedFd<'a>, Error>
    where
        E: Deref<Target = End<Receiver>>,
    {
        if self.0.get().is_none() {
            let number = used.readiness_fd()?.as_raw_fd();
            self.0.get_or_init(|| number);
        }
        match self.0.get() {
            // SAFETY: it is the receiver's for all its life, and that is lent meanwhile.
            Some(number) => Ok(unsafe { BorrowedFd::borrow_raw(*number) }),
            None => used.readiness_fd(),
        }
    }
}
