//! Short messages with descriptors, over Unix sockets (`SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, getsockname, recvmsg, sendmsg,
};

/// The most descriptors of a message.
const MOST: usize = 4;

/// Room for the credentials that the kernel puts first, of a socket for which the
/// host has asked for them (`SO_PASSCRED`).
const TOLD: usize = 64;

/// The result of [`receive`].
#[derive(Debug)]
pub enum Received<const FILES: usize> {
    /// A message of the length that was asked for, with its descriptors.
    Message([OwnedFd; FILES]),
    /// A message of another length, or with another number of descriptors, which are
    /// closed.
    Another,
    /// The other side has closed the socket.
    Closed,
}

/// Sends a message over a connected Unix socket. No SIGPIPE is sent.
///
/// # Errors
/// Those of sendmsg(2); `InvalidInput` if it is another kind of socket.
///
/// # Blocking
/// As any write does.
#[doc(alias = "sendmsg")]
#[doc(alias = "SCM_RIGHTS")]
pub fn send<const FILES: usize>(
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
            // A stream may take a part of a message; one this short goes as a whole or not
            // at all.
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives a message.
///
/// # Errors
/// Those of recvmsg(2); `InvalidInput` if it is another kind of socket; when no
/// descriptor is left: then the message is lost, with its descriptors.
///
/// # Blocking
/// Until a message comes, unless the socket is non-blocking.
#[doc(alias = "recvmsg")]
#[doc(alias = "SCM_RIGHTS")]
pub fn receive<const FILES: usize>(
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
    // Every descriptor is taken out, or those that are left over would stay open.
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
    // Descriptors that do not fit are cut off.
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

/// Refuses other sockets than Unix ones, over which the bytes would arrive and the
/// descriptors be dropped without a word; and a receiver would have eaten bytes that
/// were not meant for it.
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
