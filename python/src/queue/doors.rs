//! What gets a receiver out of a long sleep.
#![allow(unsafe_code)]

use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use procwright::Cancel;
use procwright::queue::{Error, Receiver};

use super::end::{End, Use};

#[derive(Default)]
pub(super) struct Doors {
    /// The number of the receiver's descriptor, once somebody has slept on it. Not asked
    /// for each time: it then tells at once, of what may be there already.
    message: OnceLock<RawFd>,
    /// Tells who sleeps that it was closed. Locked for a moment only.
    closer: Mutex<Option<Cancel>>,
}

impl Doors {
    /// The descriptor that tells of messages.
    pub(super) fn message<'a, E>(
        &self,
        used: &'a mut Use<E, Receiver>,
    ) -> Result<BorrowedFd<'a>, Error>
    where
        E: Deref<Target = End<Receiver>>,
    {
        if self.message.get().is_none() {
            let number = used.readiness_fd()?.as_raw_fd();
            self.message.get_or_init(|| number);
        }
        match self.message.get() {
            // SAFETY: it is the receiver's for all its life, and that is lent meanwhile.
            Some(number) => Ok(unsafe { BorrowedFd::borrow_raw(*number) }),
            None => used.readiness_fd(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Cancel>> {
        self.closer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is readable once it is closed. To be asked for before the last look whether
    /// it is.
    pub(super) fn closer(&self) -> io::Result<Cancel> {
        let mut kept = self.lock();
        if let Some(closer) = &*kept {
            return Ok(closer.clone());
        }
        let closer = Cancel::new()?;
        *kept = Some(closer.clone());
        Ok(closer)
    }

    /// To be called after it is said that it is closed.
    pub(super) fn close(&self) {
        if let Some(closer) = self.lock().take() {
            closer.cancel();
        }
    }
}
