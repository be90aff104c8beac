//! Short messages with descriptors, over Unix sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, getsockname, recvmsg, sendmsg,
};

/// So many descriptors at most.
const MOST: usize = 4;

/// Room for what the kernel tells first, of a socket that the host has asked to
/// say who sends.
const TOLD: usize = 64;

/// What has come.
#[derive(Debug)]
pub(crate) enum Received<const FILES: usize> {
    /// A message of the length that was asked for, and what it brought.
    Message([OwnedFd; FILES]),
    /// One of another length, or with another number of descriptors. They are
    /// closed.
    Another,
    /// The other side has closed the socket.
    Closed,
}

/// Sends them over a connected Unix socket. May block, as any write does. No
/// SIGPIPE is sent.
///
/// # Errors
/// Those of sendmsg(2); `InvalidInput` if it is another kind of socket.
pub(crate) fn send<const FILES: usize>(
    socket: impl AsFd,
    message: &[u8],
    files: &[BorrowedFd<'_>; FILES],
) -> io::Result<()> {
    const { assert!(FILES <= MOST) };
    only_unix(&socket)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    beside.push(SendAncillaryMessage::ScmRights(files));
    loop {
        let what = [IoSlice::new(message)];
        match sendmsg(&socket, &what, &mut beside, no_sigpipe()) {
            Ok(sent) if sent == message.len() => return Ok(()),
            // Of a stream a part may go; so short a message goes as a whole or not
            // at all.
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one. Blocks until something comes, unless the socket is non-blocking.
///
/// # Errors
/// Those of recvmsg(2); `InvalidInput` if it is another kind of socket; when no
/// descriptor is left: then the message is lost, with what it brought.
pub(crate) fn receive<const FILES: usize>(
    socket: impl AsFd,
    message: &mut [u8],
) -> io::Result<Received<FILES>> {
    const { assert!(FILES <= MOST) };
    only_unix(&socket)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST)) + TOLD];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let into = &mut [IoSliceMut::new(message)];
        match recvmsg(&socket, into, &mut beside, close_on_exec()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
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
        return Ok(Received::Closed);
    }
    // What does not fit is cut off.
    let cut = received.flags.contains(ReturnFlags::CTRUNC);
    if cut && files.len() < FILES {
        return Err(io::Error::other("no descriptor is left for the invitation"));
    }
    let whole =
        received.bytes == message.len() && !cut && !received.flags.contains(ReturnFlags::TRUNC);
    Ok(match <[OwnedFd; FILES]>::try_from(files) {
        Ok(files) if whole => Received::Message(files),
        _ => Received::Another,
    })
}

/// Over another kind of socket the bytes would arrive and the descriptors be dropped
/// without a word; and who receives would have eaten what was somebody else's.
fn only_unix(socket: &impl AsFd) -> io::Result<()> {
    if getsockname(socket)?.address_family() == AddressFamily::UNIX {
        return Ok(());
    }
    let why = "an invitation goes over a Unix socket, and this socket is of another kind";
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
