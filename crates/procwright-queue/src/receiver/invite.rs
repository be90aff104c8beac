//! Invitations, and senders in the process of the receiver.

use super::Receiver;
use crate::error::Error;
use crate::invitation::Invitation;
use crate::sender::Sender;
use procwright_os::shared_memory;

impl Receiver {
    /// Makes a place at this queue for one process, to be sent there or inherited.
    ///
    /// # Errors
    /// When no descriptor is left; [`Error::Forked`].
    pub fn invite(&mut self) -> Result<Invitation, Error> {
        self.check()?;
        self.drop_closed_links();
        // The file gets an open file description of its own. Ours has the lock that says
        // that there is a receiver, and a process that shared it would keep the lock when
        // this one is gone.
        let file = shared_memory::reopen(self.queue.file()?)?;
        let guest = self.queue.next_guest()?;
        let link = self.links.add(guest)?;
        Ok(Invitation {
            file,
            link,
            nonce: self.nonce(),
            guest,
        })
    }

    /// Makes a sender in this process.
    ///
    /// # Errors
    /// As [`invite`](Receiver::invite) and [`Sender::attach`].
    pub fn sender(&mut self) -> Result<Sender, Error> {
        Sender::attach(self.invite()?)
    }
}
