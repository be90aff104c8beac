//! A queue between a child and its parent, as the parent has it.

use super::child::Child;
use procwright_os::handle::Patience;
use procwright_os::sync::MutexGuard;
use procwright_os::time::Timeout;
use procwright_queue::{Channel, Error, OurEnd, Receiver, Sender};

impl Child {
    /// The receiver of what the child sends, if it was started with
    /// [`Channel::FromChild`](procwright_queue::Channel::FromChild). It was there before the
    /// child, so that nothing is too early for it; once the child has ended, and what it
    /// had sent is received, it is [closed](Error::Closed).
    ///
    /// # Errors
    /// [`Error::NoChannel`] if there is none, or it was taken before.
    pub fn receiver(&mut self) -> Result<Receiver, Error> {
        self.our_end().receiver()
    }

    /// A sender to the child, if it was started with
    /// [`Channel::ToChild`](procwright_queue::Channel::ToChild). What it receives from is
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

    /// A sender, as [`sender`](Child::sender) gives it, whose wait may be interrupted, which is [`Error::Io`] of the kind
    /// [`Interrupted`](std::io::ErrorKind::Interrupted): then it can be called again.
    ///
    /// # Errors
    /// As [`sender`](Child::sender).
    pub fn sender_with(&self, patience: Patience<'_>) -> Result<Sender, Error> {
        // The lock is not held while this waits. A second caller finds the end taken.
        let mut end = std::mem::replace(&mut *self.our_end(), OurEnd::Taken(Channel::ToChild));
        let sender = end.sender(self.process().pidfd(), patience);
        *self.our_end() = end;
        sender
    }

    /// Says that nothing will be sent to the child. A [`sender`](Child::sender) that was
    /// taken is closed by its owner.
    pub fn close_sender(&self) {
        let mut end = self.our_end();
        if let OurEnd::Socket(_) = &*end {
            *end = OurEnd::Taken(Channel::ToChild);
        }
    }

    fn our_end(&self) -> MutexGuard<'_, OurEnd> {
        self.channel.lock()
    }
}
