//! What a watcher needs of a token, and how it gets there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Error;
use procwright_os::message::{self, Received};

/// A token, as it is handed to another process.
///
/// It is two descriptors and a few bytes. [`send`](Invitation::send) and
/// [`receive`](Invitation::receive) bring all of it over a Unix socket. To be
/// inherited, the [`files`](Invitation::files) are passed ([`Command::pass_fd`]) and
/// the [`ticket`](Invitation::ticket) told in any way, such as an argument:
///
/// ```
/// # use procwright_liveness::{Invitation, Token};
/// let token = Token::new()?;
/// let invitation = token.invite()?;
/// let ticket = invitation.ticket();
/// let files: [_; 2] = invitation.into();
/// // In the worker, which was told `ticket` and has inherited `files`:
/// let invitation = Invitation::from_parts(files, &ticket)?;
/// # Ok::<(), procwright_liveness::Error>(())
/// ```
///
/// The worker puts them together again with
/// [`from_parts`](Invitation::from_parts).
///
/// The first descriptor is of memory that says whether the holder lives, and can
/// only be read. The second is of memory in which survivors agree who cleans up
/// ([`Monitor::claim`]); everybody who is invited can write to it.
///
/// [`Command::pass_fd`]: https://docs.rs/procwright/latest/procwright/struct.Command.html#method.pass_fd
/// [`Monitor::claim`]: super::Monitor::claim
#[derive(Debug)]
pub struct Invitation {
    /// Descriptors of the words, and of the memory of rights.
    files: [OwnedFd; 2],
    cell: u32,
    nonce: u64,
}

/// First bytes of a message.
const MAGIC: [u8; 4] = *b"pwl2";
const LENGTH: usize = 16;

impl Invitation {
    pub(super) fn new(files: [OwnedFd; 2], cell: usize, nonce: u64) -> Invitation {
        Invitation {
            files,
            // A page has fewer than 2^32 cells.
            cell: cell as u32,
            nonce,
        }
    }

    pub(super) fn cell(&self) -> usize {
        self.cell as usize
    }

    pub(super) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// The descriptors, in the order in which they have to be put together again.
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        self.files.each_ref().map(AsFd::as_fd)
    }

    /// Makes another invitation to the same token.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn try_clone(&self) -> io::Result<Invitation> {
        let [cells, rights] = &self.files;
        Ok(Invitation {
            files: [cells.try_clone()?, rights.try_clone()?],
            ..*self
        })
    }

    /// The text that has to be told beside the descriptors: 24 hexadecimal digits.
    pub fn ticket(&self) -> String {
        format!("{:08x}{:016x}", self.cell, self.nonce)
    }

    /// Puts descriptors and ticket together again. What they are is looked at when
    /// the invitation is [accepted](super::Monitor::accept).
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no ticket.
    pub fn from_parts(files: [OwnedFd; 2], ticket: &str) -> Result<Invitation, Error> {
        let wrong = || Error::Invalid(format!("{ticket:?} is no ticket of 24 digits"));
        if ticket.len() != 24 || !ticket.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        Ok(Invitation {
            files,
            cell: u32::from_str_radix(&ticket[..8], 16).map_err(|_| wrong())?,
            nonce: u64::from_str_radix(&ticket[8..], 16).map_err(|_| wrong())?,
        })
    }

    /// Sends it over a connected Unix socket. May block, as any write does.
    ///
    /// # Errors
    /// Those of sendmsg(2); `InvalidInput` if it is another kind of socket, over which
    /// no descriptor goes. No SIGPIPE is sent.
    pub fn send(&self, socket: impl AsFd) -> io::Result<()> {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.cell.to_le_bytes());
        bytes[8..].copy_from_slice(&self.nonce.to_le_bytes());
        message::send(socket, &bytes, &self.files())
    }

    /// Receives an invitation. Blocks until something comes, unless the socket is
    /// non-blocking.
    ///
    /// # Errors
    /// [`Error::Invalid`] if something else comes, or the other side has closed;
    /// [`Error::Io`] for those of recvmsg(2), of kind `InvalidInput` if it is another
    /// kind of socket, and when no descriptor is left: then the message is lost, with
    /// what it brought.
    pub fn receive(socket: impl AsFd) -> Result<Invitation, Error> {
        let mut bytes = [0; LENGTH];
        let files = match message::receive(socket, &mut bytes)? {
            Received::Message(files) if bytes[..4] == MAGIC => files,
            Received::Message(_) | Received::Another => {
                return Err(Error::Invalid("another message came".into()));
            }
            Received::Closed => {
                let why = "the other side has closed the socket";
                return Err(Error::Invalid(why.into()));
            }
        };
        Ok(Invitation {
            files,
            cell: u32::from_le_bytes(bytes[4..8].try_into().unwrap_or_default()),
            nonce: u64::from_le_bytes(bytes[8..].try_into().unwrap_or_default()),
        })
    }
}

/// The descriptors alone, to be passed on.
impl From<Invitation> for [OwnedFd; 2] {
    fn from(invitation: Invitation) -> [OwnedFd; 2] {
        invitation.files
    }
}
