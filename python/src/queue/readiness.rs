//! The descriptor that gets a receiver out of a long sleep.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use procwright::queue::{Error, Receiver};
use procwright_os::fork::OnceBox;

use super::endpoint::Endpoint;
use super::guard::EndpointGuard;

/// The number of a receiver's descriptor, once a call has slept on it.
///
/// The core is asked for it once only: after each question the descriptor is readable at
/// once, as there may be a message already.
#[derive(Default)]
pub(super) struct CachedReadiness(OnceBox<RawFd>);

impl CachedReadiness {
    /// The descriptor, which tells of messages and of a close.
    pub(super) fn fd<'a, E>(
        &self,
        guard: &'a mut EndpointGuard<E, Receiver>,
    ) -> Result<BorrowedFd<'a>, Error>
    where
        E: Deref<Target = Endpoint<Receiver>>,
    {
        if self.0.get().is_none() {
            let number = guard.readiness_fd()?.as_raw_fd();
            self.0.get_or_insert(number);
        }
        match self.0.get() {
            // SAFETY: the receiver has it open for all its life, and is borrowed meanwhile.
            Some(number) => Ok(unsafe { BorrowedFd::borrow_raw(*number) }),
            None => guard.readiness_fd(),
        }
    }
}
