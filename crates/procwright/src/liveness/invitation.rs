//! What a watcher needs of a token, and how it gets there.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::Error;

/// A token, as it is handed to another process.
///
/// It is a descriptor and a few bytes. [`send`](Invitation::send) and
/// [`receive`](Invitation::receive) bring both over a Unix socket. To be inherited,
/// the descriptor is passed ([`Command::pass_fd`]) and the
/// [`ticket`](Invitation::ticket) told in any way, such as an argument.
///
/// [`Command::pass_fd`]: crate::Command::pass_fd
#[derive(Debug)]
pub struct Invitation {
    file: OwnedFd,
    cell: u32,
    nonce: u64,
}

/// How a message begins.
const MAGIC: [u8; 4] = *b"pwl1";
const LENGTH: usize = 16;

impl Invitation {
    pub(super) fn new(file: OwnedFd, cell: usize, nonce: u64) -> Invitation {
        Invitation {
            file,
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

    /// What has to be told beside the descriptor: 24 hexadecimal digits.
    pub fn ticket(&self) -> String {
        format!("{:08x}{:016x}", self.cell, self.nonce)
    }

    /// Puts a descriptor and its ticket together again.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no ticket.
    pub fn from_parts(file: OwnedFd, ticket: &str) -> Result<Invitation, Error> {
        let wrong = || Error::Invalid(format!("{ticket:?} is no ticket of 24 digits"));
        if ticket.len() != 24 || !ticket.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        Ok(Invitation {
            file,
            cell: u32::from_str_radix(&ticket[..8], 16).map_err(|_| wrong())?,
            nonce: u64::from_str_radix(&ticket[8..], 16).map_err(|_| wrong())?,
        })
    }

    /// Sends it over a connected Unix socket. May block, as any write does.
    ///
    /// # Errors
    /// Those of sendmsg(2). No SIGPIPE is sent.
    pub fn send(&self, socket: impl AsFd) -> io::Result<()> {
        let mut message = [0; LENGTH];
        message[..4].copy_from_slice(&MAGIC);
        message[4..8].copy_from_slice(&self.cell.to_le_bytes());
        message[8..].copy_from_slice(&self.nonce.to_le_bytes());
        let files = [self.file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
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
    /// [`Error::Io`] for those of recvmsg(2).
    pub fn receive(socket: impl AsFd) -> Result<Invitation, Error> {
        let mut message = [0; LENGTH];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let into = &mut [IoSliceMut::new(&mut message)];
            match recvmsg(&socket, into, &mut beside, close_on_exec()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
                Ok(received) => break received,
            }
        };
        let mut files = beside.drain().flat_map(|one| match one {
            RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let file = files.next();
        if received.bytes == 0 {
            return Err(Error::Invalid(
                "the other side has closed the socket".into(),
            ));
        }
        match (received.bytes, &message[..4] == MAGIC.as_slice(), file) {
            (LENGTH, true, Some(file)) => Ok(Invitation {
                file,
                cell: u32::from_le_bytes(message[4..8].try_into().unwrap_or_default()),
                nonce: u64::from_le_bytes(message[8..].try_into().unwrap_or_default()),
            }),
            _ => Err(Error::Invalid("another message came".into())),
        }
    }
}

/// The descriptor.
impl AsFd for Invitation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The descriptor alone, to be passed on.
impl From<Invitation> for OwnedFd {
    fn from(invitation: Invitation) -> OwnedFd {
        invitation.file
    }
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
