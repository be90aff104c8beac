//! The end of the process that starts a program.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::{Channel, SOCKET, VARIABLE};
use crate::error::Error;
use crate::invitation::Invitation;
use crate::receiver::{Options, Receiver};
use crate::sender::Sender;
use procwright_liveness::inherited::Inheritance;
use procwright_os::fork::CloseOnFork;
use procwright_os::handle::Patience;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::shared_memory;

/// The parent's end of a child's channel.
#[doc(hidden)]
#[derive(Debug)]
pub enum OurEnd {
    /// The child has no channel.
    None,
    /// The receiver of what the child sends.
    Receiver(Box<Receiver>),
    /// The socket over which the child's invitation comes.
    Socket(CloseOnFork),
    /// The end was handed out.
    Taken(Channel),
}

impl OurEnd {
    /// Opens both ends, before the program starts.
    ///
    /// # Errors
    /// As [`Options::create`].
    pub fn open(channel: Channel, options: Options) -> Result<(OurEnd, Inheritance), Error> {
        let inheritance = |files: Vec<OwnedFd>, ticket: String| Inheritance {
            variable: VARIABLE,
            who: channel.parent_role().to_owned(),
            files,
            ticket,
            needs_files: true,
        };
        match channel {
            Channel::FromChild => {
                let mut receiver = options.create()?;
                let invitation = receiver.invite()?;
                let copy = |file: BorrowedFd<'_>| file.try_clone_to_owned();
                let files = invitation.files().into_iter().map(copy);
                let files = files.collect::<io::Result<Vec<_>>>()?;
                let theirs = inheritance(files, invitation.ticket());
                Ok((OurEnd::Receiver(Box::new(receiver)), theirs))
            }
            Channel::ToChild => {
                let (ours, theirs) = shared_memory::socket_pair().map_err(Error::from_io)?;
                let theirs = inheritance(vec![theirs], SOCKET.to_owned());
                Ok((OurEnd::Socket(CloseOnFork::new(ours)), theirs))
            }
        }
    }

    /// The receiver of what the child sends.
    pub fn receiver(&mut self) -> Result<Receiver, Error> {
        match std::mem::replace(self, OurEnd::Taken(Channel::FromChild)) {
            OurEnd::Receiver(receiver) => Ok(*receiver),
            other => {
                *self = other;
                Err(self.is_not(Channel::FromChild))
            }
        }
    }

    /// A sender to the child. Waits until the child has made its receiver, or has ended, of
    /// which `exit` tells.
    pub fn sender(
        &mut self,
        exit: Option<BorrowedFd<'_>>,
        patience: Patience<'_>,
    ) -> Result<Sender, Error> {
        let OurEnd::Socket(socket) = self else {
            return Err(self.is_not(Channel::ToChild));
        };
        let socket = socket.get().map_err(|_| Error::Forked)?;
        let others = exit.into_iter().chain(patience.interrupt());
        let mut fds: Vec<_> = std::iter::once(socket)
            .chain(others)
            .map(|fd| Fd::from_borrowed_fd(fd, Flags::IN))
            .collect();
        while match poll::poll(&mut fds, patience.deadline()) {
            Ok(0) => return Err(Error::TimedOut),
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => return Err(error.into()),
        } {}
        if fds[0].revents().is_empty() {
            let is_last = fds.last().is_some_and(|last| !last.revents().is_empty());
            if patience.interrupt().is_some() && is_last {
                return Err(io::Error::from(io::ErrorKind::Interrupted).into());
            }
            return Err(Error::NoChannel(format!("it has ended before {MADE}")));
        }
        let invitation = match Invitation::receive(socket) {
            Ok(invitation) => invitation,
            // The child may have ended as well, which is told a moment later.
            Err(Error::Invalid(_)) => {
                let why = format!("it, or a program that it became, has closed it before {MADE}");
                return Err(Error::NoChannel(why));
            }
            Err(error) => return Err(error),
        };
        *self = OurEnd::Taken(Channel::ToChild);
        Sender::attach(invitation)
    }

    /// Error that says why this end cannot be had.
    fn is_not(&self, wanted: Channel) -> Error {
        let why = match (self, wanted) {
            (OurEnd::None, _) => {
                "it was started without one; start it with Command::channel() \
                 (Python: channel=\"from_child\" or \"to_child\"; Ruby: channel: :from_child or :to_child)"
            }
            (OurEnd::Taken(channel), _) if *channel == wanted => {
                "this end of it was taken before; a Sender can be cloned"
            }
            (_, Channel::FromChild) => "the child receives: take its sender()",
            (_, Channel::ToChild) => "the child sends: take its receiver()",
        };
        Error::NoChannel(why.into())
    }
}

const MADE: &str = "it has made its queue (Receiver, of_parent)";
