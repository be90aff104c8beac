//! What a watcher needs of a token, and how it gets there.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, getsockname, recvmsg, sendmsg,
};

use super::Error;

/// A token, as it is handed to another process.
///
/// It is two descriptors and a few bytes. [`send`](Invitation::send) and
/// [`receive`](Invitation::receive) bring all of it over a Unix socket. To be
/// inherited, the [`files`](Invitation::files) are passed ([`Command::pass_fd`]) and
/// the [`ticket`](Invitation::ticket) told in any way, such as an argument:
///
/// ```
/// # use procwright::liveness::{Invitation, Token};
/// # use procwright::Command;
/// let token = Token::new()?;
/// let invitation = token.invite()?;
/// let ticket = invitation.ticket();
/// let [cells, rights] = <[_; 2]>::from(invitation);
/// let command = Command::new("worker")
///     .arg(ticket)
///     .pass_fd(cells, 3)
///     .pass_fd(rights, 4);
/// # Ok::<(), procwright::liveness::Error>(())
/// ```
///
/// The worker puts them together again with
/// [`from_parts`](Invitation::from_parts).
///
/// The first descriptor is of memory that says whether the holder lives, and can
/// only be read. The second is of memory in which survivors agree who cleans up
/// ([`Monitor::claim`]); everybody who is invited can write to it.
///
/// [`Command::pass_fd`]: crate::Command::pass_fd
/// [`Monitor::claim`]: super::Monitor::claim
#[derive(Debug)]
pub struct Invitation {
    /// Of the cells and of the rights.
    files: [OwnedFd; 2],
    cell: u32,
    nonce: u64,
}

/// How a message begins.
const MAGIC: [u8; 4] = *b"pwl2";
const LENGTH: usize = 16;

/// Room for what the kernel tells first, of a socket that the host has asked to
/// say who sends.
const TOLD: usize = 64;

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

    /// Another that leads to the same token.
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

    /// What has to be told beside the descriptors: 24 hexadecimal digits.
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
        only_unix(&socket)?;
        let mut message = [0; LENGTH];
        message[..4].copy_from_slice(&MAGIC);
        message[4..8].copy_from_slice(&self.cell.to_le_bytes());
        message[8..].copy_from_slice(&self.nonce.to_le_bytes());
        let files = self.files();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&files));
        loop {
            match sendmsg(
                &socket,
                &[IoSlice::new(&message)],
                &mut beside,
                no_sigpipe(),
            ) {
                Ok(LENGTH) => return Ok(()),
                // Of a stream a part may go; so short a message goes as a whole
                // or not at all.
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives one. Blocks until something comes, unless the socket is
    /// non-blocking.
    ///
    /// # Errors
    /// [`Error::Invalid`] if something else comes, or the other side has closed;
    /// [`Error::Io`] for those of recvmsg(2), of kind `InvalidInput` if it is another
    /// kind of socket, and when no descriptor is left: then the message is lost, with
    /// what it brought.
    pub fn receive(socket: impl AsFd) -> Result<Invitation, Error> {
        only_unix(&socket)?;
        let mut message = [0; LENGTH];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2)) + TOLD];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let into = &mut [IoSliceMut::new(&mut message)];
            match recvmsg(&socket, into, &mut beside, close_on_exec()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
                Ok(received) => break received,
            }
        };
        // All of them, or those that are left over would stay open.
        let files: Vec<OwnedFd> = beside
            .drain()
            .flat_map(|one| match one {
                RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
                _ => Vec::new(),
            })
            .collect();
        if received.bytes == 0 {
            return Err(Error::Invalid(
                "the other side has closed the socket".into(),
            ));
        }
        // What does not fit is cut off.
        let cut = received.flags.contains(ReturnFlags::CTRUNC);
        if cut && files.len() < 2 {
            return Err(io::Error::other("no descriptor is left for the invitation").into());
        }
        let whole = received.bytes == LENGTH
            && message[..4] == MAGIC
            && !cut
            && !received.flags.contains(ReturnFlags::TRUNC);
        let files = <[OwnedFd; 2]>::try_from(files).ok().filter(|_| whole);
        let files = files.ok_or_else(|| Error::Invalid("another message came".into()))?;
        Ok(Invitation {
            files,
            cell: u32::from_le_bytes(message[4..8].try_into().unwrap_or_default()),
            nonce: u64::from_le_bytes(message[8..].try_into().unwrap_or_default()),
        })
    }
}

/// The descriptors alone, to be passed on.
impl From<Invitation> for [OwnedFd; 2] {
    fn from(invitation: Invitation) -> [OwnedFd; 2] {
        invitation.files
    }
}

/// Over another kind of socket the bytes would arrive and the descriptors be dropped
/// without a word; and who receives would have eaten what was somebody else's.
fn only_unix(socket: &impl AsFd) -> io::Result<()> {
    if getsockname(socket)?.address_family() == AddressFamily::UNIX {
        return Ok(());
    }
    let why = "a liveness invitation goes over a Unix socket, and this socket is of another kind";
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

fn no_sigpipe() -> SendFlags {
    #[cfg(not(target_vendor = "apple"))]
    return SendFlags::NOSIGNAL;
    #[cfg(target_vendor = "apple")]
    return SendFlags::empty();
}

fn close_on_exec() -> RecvFlags {
    #[cfg(not(target_vendor = "apple"))]
    return RecvFlags::CMSG_CLOEXEC;
    #[cfg(target_vendor = "apple")]
    return RecvFlags::empty();
}
