//! What a sender needs of a queue, and how it gets there.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, FdFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::Error;
use crate::liveness;

/// A place at the queue, for one process: it may have any number of senders.
///
/// Three descriptors and a few bytes. [`send`](Invitation::send) and
/// [`receive`](Invitation::receive) bring all over a Unix socket. To be inherited,
/// the descriptors are passed ([`Command::pass_fd`]) and the
/// [`ticket`](Invitation::ticket) told in any way, such as an argument.
///
/// As long as it is there, or a copy of its descriptors is, the receiver takes it
/// for one who may send.
///
/// [`Command::pass_fd`]: crate::Command::pass_fd
#[derive(Debug)]
pub struct Invitation {
    pub(super) file: OwnedFd,
    /// One end of a pair of sockets; the receiver has the other.
    pub(super) link: OwnedFd,
    pub(super) life: liveness::Invitation,
    pub(super) nonce: u64,
    /// Its number.
    pub(super) guest: u32,
}

/// How a ticket begins: the version of what it stands for.
const MAGIC: &str = "pwq1";
const LIFE: usize = 24;
const TICKET: usize = MAGIC.len() + 16 + 8 + LIFE;
const FILES: usize = 3;

impl Invitation {
    /// What has to be told beside the descriptors: 52 letters and digits.
    pub fn ticket(&self) -> String {
        let life = self.life.ticket();
        format!("{MAGIC}{:016x}{:08x}{life}", self.nonce, self.guest)
    }

    /// The descriptors, in the order in which [`from_parts`](Self::from_parts)
    /// wants them.
    pub fn files(&self) -> [BorrowedFd<'_>; FILES] {
        [self.file.as_fd(), self.link.as_fd(), self.life.as_fd()]
    }

    /// Puts descriptors and ticket together again. The descriptors are
    /// close-on-exec from then on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no ticket.
    pub fn from_parts(files: [OwnedFd; FILES], ticket: &str) -> Result<Invitation, Error> {
        let wrong = || Error::Invalid(format!("{ticket:?} is no ticket of {TICKET} characters"));
        let digits = ticket.strip_prefix(MAGIC).ok_or_else(wrong)?;
        if ticket.len() != TICKET || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        // Those that come by inheritance are not close-on-exec. A program that this
        // process starts must not keep its place at the queue.
        for file in &files {
            rustix::io::fcntl_setfd(file, FdFlags::CLOEXEC).map_err(io::Error::from)?;
        }
        let [file, link, life] = files;
        Ok(Invitation {
            file,
            link,
            nonce: u64::from_str_radix(&digits[..16], 16).map_err(|_| wrong())?,
            guest: u32::from_str_radix(&digits[16..24], 16).map_err(|_| wrong())?,
            life: liveness::Invitation::from_parts(life, &digits[24..])
                .map_err(|error| Error::Invalid(error.to_string()))?,
        })
    }

    /// Sends it over a connected Unix socket. May block, as any write does.
    ///
    /// # Errors
    /// Those of sendmsg(2). No SIGPIPE is sent.
    pub fn send(&self, socket: impl AsFd) -> io::Result<()> {
        let ticket = self.ticket();
        let files = self.files();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&files));
        let message = [IoSlice::new(ticket.as_bytes())];
        loop {
            match sendmsg(&socket, &message, &mut beside, no_sigpipe()) {
                Ok(TICKET) => return Ok(()),
                // Of a stream a part may go; so short a message goes as a whole
                // or not at all.
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(Errno::INTR) => {}
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
        let mut message = [0; TICKET];
        // Room for one more, so that too many are not taken for the right number.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES + 1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let into = &mut [IoSliceMut::new(&mut message)];
            match recvmsg(&socket, into, &mut beside, close_on_exec()) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
                Ok(received) => break received,
            }
        };
        // All of them, so that none stays open.
        let files: Vec<OwnedFd> = beside
            .drain()
            .flat_map(|one| match one {
                RecvAncillaryMessage::ScmRights(files) => files.collect(),
                _ => Vec::new(),
            })
            .collect();
        if received.bytes == 0 {
            return Err(Error::Invalid(
                "the other side has closed the socket".into(),
            ));
        }
        let another = || Error::Invalid("another message came".into());
        if received.bytes != TICKET || received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(another());
        }
        let ticket = std::str::from_utf8(&message).map_err(|_| another())?;
        let files = <[OwnedFd; FILES]>::try_from(files).map_err(|_| another())?;
        Invitation::from_parts(files, ticket)
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
