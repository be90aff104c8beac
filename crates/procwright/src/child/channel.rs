//! A queue between a child and its parent, as the parent has it.

use std::time::Instant;

use super::{Child, Unstarted};
use crate::error::{Invalid, SpawnError, Step};
use crate::heirloom::Heirloom;
use crate::queue::{Error, OurEnd, Receiver, Sender};
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
        self.channel.receiver()
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
        let deadline = timeout.into().starting(Instant::now());
        // Ours alone, so that the channel can be borrowed as well.
        let process = self.process().clone();
        self.channel.sender(process.pidfd(), deadline)
    }
}
