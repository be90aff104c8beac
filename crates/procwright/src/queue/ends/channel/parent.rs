//! The end of the one who starts a program.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::SOCKET;
use crate::handle::Patience;
use crate::heirloom::Heirloom;
use crate::queue::channel::{Channel, VARIABLE};
use crate::queue::{Error, Invitation, Options, Receiver, Sender};
use crate::sys::fork::Kept;
use crate::sys::poll::{self, Fd, Flags};
use crate::sys::shared;

/// What we have of a child's channel.
#[derive(Debug)]
pub(crate) enum OurEnd {
    None,
    Receiver(Box<Receiver>),
    /// Over which the invitation comes that the child makes.
    Socket(Kept),
    /// It was handed out.
    Taken(Channel),
}

impl OurEnd {
    /// Both ends, before the program starts.
    ///
    /// # Errors
    /// As [`Options::create`].
    pub(crate) fn open(channel: Channel, options: Options) -> Result<(OurEnd, Heirloom), Error> {
        let heirloom = |files: Vec<OwnedFd>, ticket: String| Heirloom {
            variable: VARIABLE,
            who: channel.who().to_owned(),
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
                let theirs = heirloom(files, invitation.ticket());
                Ok((OurEnd::Receiver(Box::new(receiver)), theirs))
            }
            Channel::ToChild => {
                let (ours, theirs) = shared::link().map_err(Error::of)?;
                let theirs = heirloom(vec![theirs], SOCKET.to_owned());
                Ok((OurEnd::Socket(Kept::new(ours)), theirs))
            }
        }
    }

    /// What the child sends to.
    pub(crate) fn receiver(&mut self) -> Result<Receiver, Error> {
        match std::mem::replace(self, OurEnd::Taken(Channel::FromChild)) {
            OurEnd::Receiver(receiver) => Ok(*receiver),
            other => {
                *self = other;
                Err(self.is_not(Channel::FromChild))
            }
        }
    }

    /// To what the child receives. Waits until that is there, or the child has ended,
    /// of which `exit` tells.
    pub(crate) fn sender(
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
            // It may have ended as well, which is told a moment later.
            Err(Error::Invalid(_)) => {
                let why = format!("it, or a program that it became, has closed it before {MADE}");
                return Err(Error::NoChannel(why));
            }
            Err(error) => return Err(error),
        };
        *self = OurEnd::Taken(Channel::ToChild);
        Sender::attach(invitation)
    }

    /// Why the end of this channel cannot be had.
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
