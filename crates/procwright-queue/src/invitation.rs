//! Invitations: all that a sender needs of a queue, and how it gets there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::FdFlags;

use crate::error::Error;
use procwright_os::message::{self, Received};

/// A place at the queue, for one process: it may have any number of senders.
///
/// An invitation is two descriptors and a few bytes. [`send`](Invitation::send) and
/// [`receive`](Invitation::receive) bring all over a Unix socket. To be inherited, the
/// descriptors are passed ([`Command::pass_fd`]) and the [`ticket`](Invitation::ticket)
/// told in any way, such as an argument.
///
/// The receiver counts an invitation as a process that may send, as long as it exists, or a
/// copy of its descriptors.
///
/// [`Command::pass_fd`]: https://docs.rs/procwright/latest/procwright/struct.Command.html#method.pass_fd
#[derive(Debug)]
pub struct Invitation {
    pub(crate) file: OwnedFd,
    /// One end of a pair of sockets; the receiver has the other.
    pub(crate) link: OwnedFd,
    pub(crate) nonce: u64,
    /// Number of the process that sends.
    pub(crate) guest: u32,
}

/// First letters of a ticket: the version of what it stands for.
const MAGIC: &str = "pwq1";
const TICKET: usize = MAGIC.len() + 16 + 8;
const FILES: usize = 2;

impl Invitation {
    /// The text that has to be told beside the descriptors: 28 letters and digits.
    pub fn ticket(&self) -> String {
        format!("{MAGIC}{:016x}{:08x}", self.nonce, self.guest)
    }

    /// The descriptors, in the order that [`from_parts`](Self::from_parts) wants.
    pub fn files(&self) -> [BorrowedFd<'_>; FILES] {
        [self.file.as_fd(), self.link.as_fd()]
    }

    /// Puts descriptors and ticket together again. The descriptors are close-on-exec from
    /// then on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no ticket.
    pub fn from_parts(files: [OwnedFd; FILES], ticket: &str) -> Result<Invitation, Error> {
        let wrong = || Error::Invalid(format!("{ticket:?} is no ticket of {TICKET} characters"));
        let digits = ticket.strip_prefix(MAGIC).ok_or_else(wrong)?;
        if ticket.len() != TICKET || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        // Inherited descriptors are not close-on-exec. A program that this process starts
        // must not keep its place at the queue.
        for file in &files {
            rustix::io::fcntl_setfd(file, FdFlags::CLOEXEC).map_err(io::Error::from)?;
        }
        let [file, link] = files;
        Ok(Invitation {
            file,
            link,
            nonce: u64::from_str_radix(&digits[..16], 16).map_err(|_| wrong())?,
            guest: u32::from_str_radix(&digits[16..], 16).map_err(|_| wrong())?,
        })
    }

    /// Sends the invitation over a connected Unix socket. May block, as any write does.
    ///
    /// # Errors
    /// Those of sendmsg(2); `InvalidInput` if it is another kind of socket, over which no
    /// descriptor goes. No SIGPIPE is sent.
    #[doc(alias = "sendmsg")]
    #[doc(alias = "SCM_RIGHTS")]
    pub fn send(&self, socket: impl AsFd) -> io::Result<()> {
        message::send(socket, self.ticket().as_bytes(), &self.files())
    }

    /// Receives an invitation. Blocks until a message comes, unless the socket is
    /// non-blocking.
    ///
    /// # Errors
    /// [`Error::Invalid`] if something else comes, or the other side has closed;
    /// [`Error::Io`] for those of recvmsg(2), of kind `InvalidInput` if it is another kind
    /// of socket, and when no descriptor is left: then the message is lost, with its
    /// descriptors.
    #[doc(alias = "recvmsg")]
    pub fn receive(socket: impl AsFd) -> Result<Invitation, Error> {
        let mut ticket = [0; TICKET];
        let another = || Error::Invalid("another message came".into());
        match message::receive(socket, &mut ticket)? {
            Received::Message(files) => {
                let ticket = std::str::from_utf8(&ticket).map_err(|_| another())?;
                Invitation::from_parts(files, ticket)
            }
            Received::Another => Err(another()),
            Received::Closed => Err(Error::Invalid(
                "the other side has closed the socket".into(),
            )),
        }
    }
}
