//! A queue between a child and its parent, as the parent has it.

use std::sync::{MutexGuard, PoisonError};

use super::{Child, Unstarted};
use crate::error::{Invalid, SpawnError, Step};
use crate::handle::Patience;
use crate::heirloom::Heirloom;
use crate::queue::{Channel, Error, OurEnd, Receiver, Sender};
use crate::spec::Spec;
use crate::time::Timeout;

/// Both ends of what `spec` wants.
pub(super) fn open(spec: &Spec) -> Result<(OurEnd, Option<Heirloom>), Unstarted> {
    let Some(channel) = spec.channel else {
        return Ok((OurEnd::None, None));
    };
    let opened = OurEnd::open(channel, spec.channel_options);
    let (ours, theirs) = opened.map_err(|error| match error {
        Error::Io(error) => match error.downcast::<Invalid>() {
            Ok(invalid) => Unstarted::from(invalid),
            Err(error) => SpawnError::new(Step::Channel, "", error).into(),
        },
        other => SpawnError::new(Step::Channel, "", other.into()).into(),
    })?;
    Ok((ours, Some(theirs)))
}

impl Child {
    /// What the child sends to, if it was started with
    /// [`Channel::FromChild`](crate::queue::Channel::FromChild). It was there before the
    /// child, so that nothing is too early for it; once the child has ended, and what it
    /// had sent is received, it is [closed](Error::Closed).
    ///
    /// # Errors
    /// [`Error::NoChannel`] if there is none, or it was taken before.
    pub fn receiver(&mut self) -> Result<Receiver, Error> {
        self.our_end().receiver()
    }

    /// Sends to the child, if it was started with
    /// [`Channel::ToChild`](crate::queue::Channel::ToChild). What it receives from is
    /// made by the child itself; once that has died, a sender is
    /// [told](Error::ReceiverDead).
    ///
    /// # Blocking
    /// Until the child has made its receiver, at most for `timeout`.
    ///
    /// # Errors
    /// [`Error::NoChannel`] if there is none, if it was taken before, or if the child
    /// has ended or become another program before it made its receiver.
    /// [`Error::TimedOut`]; then it can be called again. Otherwise as
    /// [`Sender::attach`].
    pub fn sender(&mut self, timeout: impl Into<Timeout>) -> Result<Sender, Error> {
        self.sender_with(Patience::from(timeout))
    }

    /// The same; and a wait may be interrupted, which is [`Error::Io`] of the kind
    /// [`Interrupted`](std::io::ErrorKind::Interrupted): then it can be called again.
    ///
    /// # Errors
    /// As [`sender`](Child::sender).
    pub fn sender_with(&self, patience: Patience<'_>) -> Result<Sender, Error> {
        // Not locked meanwhile. Who comes while another waits finds it taken.
        let mut end = std::mem::replace(&mut *self.our_end(), OurEnd::Taken(Channel::ToChild));
        let sender = end.sender(self.process().pidfd(), patience);
        *self.our_end() = end;
        sender
    }

    /// Nobody will send to the child. If a [`sender`](Child::sender) was taken, that
    /// is closed where it is.
    pub fn close_sender(&self) {
        let mut end = self.our_end();
        if let OurEnd::Socket(_) = &*end {
            *end = OurEnd::Taken(Channel::ToChild);
        }
    }

    fn our_end(&self) -> MutexGuard<'_, OurEnd> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
