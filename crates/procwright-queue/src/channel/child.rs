//! The end of the program that was started.

use std::io;

use super::{Channel, SOCKET, VARIABLE};
use crate::error::Error;
use crate::invitation::Invitation;
use crate::receiver::{Options, Receiver};
use crate::sender::Sender;
use procwright_liveness::inherited::Told;

impl Sender {
    /// Sends to the process that has started this one with
    /// [`Channel::FromChild`]. The program may have been started
    /// by way of others that become it by exec, such as `nice` or `env`.
    ///
    /// ```no_run
    /// use procwright_queue::Sender;
    ///
    /// let mut sender = Sender::of_parent()?;
    /// sender.send(b"a result")?;
    /// # Ok::<(), procwright_queue::Error>(())
    /// ```
    ///
    /// The inherited descriptors are taken over once, so that the programs that this one
    /// starts do not have them. A sender can be cloned. Until then they are inherited as
    /// others are, and the parent counts every process that has them as one that may send.
    ///
    /// # Errors
    /// [`Error::NoParent`] if this process was not started so: nor by its own parent,
    /// though perhaps that one was; with a channel in the other direction; or if this was
    /// taken before. Otherwise as [`Sender::attach`].
    pub fn of_parent() -> Result<Sender, Error> {
        let told = told(Channel::FromChild)?;
        let files = told.take().map_err(Error::NoParent)?;
        Sender::attach(Invitation::from_parts(files, &told.ticket)?)
    }
}

impl Receiver {
    /// Receives from the process that has started this one with
    /// [`Channel::ToChild`], and usual [`Options`]. The end of the
    /// parent is [`Error::Closed`], once all that it had sent was received.
    ///
    /// ```no_run
    /// use procwright_queue::Receiver;
    ///
    /// let mut receiver = Receiver::of_parent()?;
    /// let piece_of_work = receiver.recv()?;
    /// # Ok::<(), procwright_queue::Error>(())
    /// ```
    ///
    /// The descriptor is taken once, as with [`Sender::of_parent`], and is inherited until
    /// then.
    ///
    /// # Errors
    /// [`Error::NoParent`], as there; otherwise as [`Receiver::new`].
    pub fn of_parent() -> Result<Receiver, Error> {
        Options::new().of_parent()
    }
}

impl Options {
    /// Calls [`Receiver::of_parent`] with a queue of this shape.
    ///
    /// # Errors
    /// As there.
    pub fn of_parent(self) -> Result<Receiver, Error> {
        let told = told(Channel::ToChild)?;
        if told.ticket != SOCKET {
            let why = format!("{VARIABLE} is of another version of this library");
            return Err(Error::NoParent(why));
        }
        // Calls that may fail come first: the descriptors can be taken once.
        let mut receiver = self.create()?;
        let invitation = receiver.invite()?;
        let [socket] = told.take().map_err(Error::NoParent)?;
        match invitation.send(&socket) {
            // The parent has ended, or wants no sender. Then the queue is closed.
            Err(error) if is_gone(&error) => {}
            sent => sent?,
        }
        Ok(receiver)
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

fn told(wanted: Channel) -> Result<Told, Error> {
    let told = Told::of(VARIABLE).map_err(Error::NoParent)?;
    if told.who == wanted.parent_role() {
        return Ok(told);
    }
    let why = match wanted {
        Channel::FromChild => {
            "the parent sends, and this process is to receive: take \
                               queue::Receiver::of_parent()"
        }
        Channel::ToChild => {
            "the parent receives, and this process is to send: take \
                             queue::Sender::of_parent()"
        }
    };
    Err(Error::NoParent(why.into()))
}
