//! Linux: Unix sockets in the abstract namespace. Names are those of a network
//! namespace: in another one no listener is found.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, recv, send, socket_with,
};

use super::{Accepted, Introduced, SocketName};

/// Connections that may wait to be accepted, if the system allows it: no queue has
/// more lanes.
const BACKLOG: i32 = 4096;

const QUIET: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

fn socket() -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, QUIET, None)?;
    Ok(socket)
}

fn address(name: &SocketName) -> io::Result<SocketAddrUnix> {
    let end = name.iter().rposition(|byte| *byte != 0);
    let Some(end) = end else {
        return Err(io::ErrorKind::ConnectionRefused.into());
    };
    Ok(SocketAddrUnix::new_abstract_name(&name[..=end])?)
}

pub fn listen(name: &SocketName) -> io::Result<OwnedFd> {
    let socket = socket()?;
    bind(&socket, &address(name)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

pub fn connect(name: &SocketName) -> io::Result<OwnedFd> {
    let socket = socket()?;
    let address = address(name)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The name of a process that has ended may be bound by any user.
    if !is_one_of_us(socket.as_fd()) {
        return Err(Errno::PERM.into());
    }
    Ok(socket)
}

pub fn accept(listener: BorrowedFd<'_>) -> io::Result<Accepted> {
    loop {
        match accept_with(listener, QUIET) {
            Ok(link) if is_one_of_us(link.as_fd()) => return Ok(Accepted::Peer(link)),
            Ok(_) => return Ok(Accepted::OtherUser),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(Errno::AGAIN) => return Ok(Accepted::Nothing),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_one_of_us(link: BorrowedFd<'_>) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    peer(link).is_ok_and(|peer| peer.uid == ours || peer.uid == 0)
}

pub fn peer_is(link: BorrowedFd<'_>, pid: i32) -> bool {
    peer(link).is_ok_and(|peer| peer.pid == pid)
}

/// The credentials of the other end, without rustix, which has no place for a process
/// that cannot be seen from here and whose number is 0.
fn peer(link: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both are ours, and the size is that of the struct.
    let asked = unsafe {
        libc::getsockopt(
            link.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    match asked {
        0 => Ok(peer),
        _ => Err(io::Error::last_os_error()),
    }
}

pub fn introduce(link: BorrowedFd<'_>, number: u32) -> io::Result<()> {
    loop {
        // Four bytes go as a whole, and there is room for them.
        match send(link, &number.to_le_bytes(), SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

pub fn introduced(link: BorrowedFd<'_>) -> Introduced {
    let mut number = [0; 4];
    loop {
        match recv(link, &mut number, RecvFlags::DONTWAIT) {
            Ok((_, 4)) => return Introduced::As(u32::from_le_bytes(number)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Introduced::NotYet,
            _ => return Introduced::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory;

    fn name(text: &str) -> SocketName {
        let mut name = [0; 32];
        let text = format!("{text}-{}", std::process::id());
        name[..text.len()].copy_from_slice(text.as_bytes());
        name
    }

    #[test]
    fn nobody_waits_for_the_other() {
        let place = name("pw-meet");
        assert_eq!(
            connect(&place).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
        let listener = listen(&place).unwrap();
        assert!(matches!(accept(listener.as_fd()), Ok(Accepted::Nothing)));
        let silent = connect(&place).unwrap();
        let link = connect(&place).unwrap();
        introduce(link.as_fd(), 7).unwrap();
        shared_memory::ring(link.as_fd());
        let next = || match accept(listener.as_fd()) {
            Ok(Accepted::Peer(link)) => link,
            other => panic!("{other:?}"),
        };
        let (first, second) = (next(), next());
        assert_eq!(introduced(first.as_fd()), Introduced::NotYet);
        assert_eq!(introduced(second.as_fd()), Introduced::As(7));
        assert!(shared_memory::silence(second.as_fd()));
        drop(silent);
        assert_eq!(introduced(first.as_fd()), Introduced::Gone);
    }

    #[test]
    fn who_was_not_let_in_is_told_of_the_end() {
        let place = name("pw-end");
        let listener = listen(&place).unwrap();
        let link = connect(&place).unwrap();
        assert!(!shared_memory::is_hung_up(link.as_fd()));
        drop(listener);
        assert!(shared_memory::is_hung_up(link.as_fd()));
        assert!(connect(&[0; 32]).is_err());
    }
}
