//! Linux: Unix sockets. Abstract names are those of a network namespace: in another one no
//! listener is found.
//!
//! # A private socket
//!
//! 1. Of those who listen under one name one is at it at a time, as the caller takes care. So
//!    what has the name was left by a process that was killed before step 5, and is removed.
//! 2. It is bound to the name in a directory that no other user can enter, by way of
//!    `/proc/self/fd`: the path fits whatever the directory's is.
//! 3. It gets the mode 0600 there, whatever the umask is.
//! 4. It is opened with `O_PATH`, which holds the inode.
//! 5. The name is removed.
//! 6. Others connect to the inode, at `/proc/PID/fd/N`. To go there the kernel wants the
//!    right to look into the process, and then the right to write to the inode, both before
//!    it looks at the socket: other users get no further, and fill no backlog.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, chmodat, openat, readlink, unlinkat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, getpeername, recv, send, socket_with,
};

use super::{Accepted, Introduced, PrivateListener, SocketName};
use crate::private_dir::PrivateDir;

/// Connections that may wait to be accepted, if the system allows it: no queue has
/// more lanes.
const BACKLOG: i32 = 4096;

const QUIET: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

fn socket() -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, QUIET, None)?;
    Ok(socket)
}

/// The bytes of a name, without what it is filled up with.
///
/// # Errors
/// `ConnectionRefused` if there are none: nobody listens there.
fn text(name: &SocketName) -> io::Result<&[u8]> {
    match name.iter().rposition(|byte| *byte != 0) {
        Some(end) => Ok(&name[..=end]),
        None => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

/// The name of a private socket in its directory. It begins with a dot, as no name of a
/// queue does.
fn file_name(name: &SocketName) -> io::Result<Vec<u8>> {
    Ok([b".", text(name)?].concat())
}

pub fn listen_abstract(name: &SocketName) -> io::Result<OwnedFd> {
    let socket = socket()?;
    bind(&socket, &SocketAddrUnix::new_abstract_name(text(name)?)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

pub fn listen_private(directory: &PrivateDir, name: &SocketName) -> io::Result<PrivateListener> {
    let file = file_name(name)?;
    let listener = socket()?;
    let at = format!("/proc/self/fd/{}/", directory.as_fd().as_raw_fd());
    let path = [at.as_bytes(), &file].concat();
    let address = SocketAddrUnix::new(path)?;
    match unlinkat(directory, &*file, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    bind(&listener, &address)?;
    let door = open_door(directory, &file);
    // Whether or not that is open, nothing is to stay there.
    unlinkat(directory, &*file, AtFlags::empty())?;
    let door = door?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(PrivateListener { listener, door })
}

fn open_door(directory: &PrivateDir, file: &[u8]) -> io::Result<OwnedFd> {
    chmodat(directory, file, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(directory, file, how, Mode::empty())?)
}

pub fn connect_abstract(name: &SocketName) -> io::Result<OwnedFd> {
    connect(&SocketAddrUnix::new_abstract_name(text(name)?)?)
}

pub fn connect_private(pid: i32, number: u32, name: &SocketName) -> io::Result<OwnedFd> {
    let file = file_name(name)?;
    let door = format!("/proc/{pid}/fd/{number}");
    // The link comes first: the number may be another file's by now, and to look for a
    // socket there waits for whatever server that file is on.
    let target = readlink(&door, Vec::new())?;
    if !last_part(target.to_bytes()).starts_with(&file) {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let link = connect(&SocketAddrUnix::new(door)?)?;
    // The number may have become another socket's after that look: who was come to is told
    // by the name that its socket was bound to.
    let peer = getpeername(&link)?.and_then(|peer| SocketAddrUnix::try_from(peer).ok());
    let bound = peer.as_ref().and_then(SocketAddrUnix::path_bytes);
    match bound.is_some_and(|bound| last_part(bound) == file) {
        true => Ok(link),
        false => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

fn connect(address: &SocketAddrUnix) -> io::Result<OwnedFd> {
    let socket = socket()?;
    loop {
        match rustix::net::connect(&socket, address) {
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

    fn text_of(name: &SocketName) -> &str {
        std::str::from_utf8(text(name).unwrap()).unwrap()
    }

    #[test]
    fn nobody_waits_for_the_other() {
        let place = name("pw-meet");
        assert_eq!(
            connect_abstract(&place).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
        let listener = listen_abstract(&place).unwrap();
        assert!(matches!(accept(listener.as_fd()), Ok(Accepted::Nothing)));
        let silent = connect_abstract(&place).unwrap();
        let link = connect_abstract(&place).unwrap();
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
        let listener = listen_abstract(&place).unwrap();
        let link = connect_abstract(&place).unwrap();
        assert!(!shared_memory::is_hung_up(link.as_fd()));
        drop(listener);
        assert!(shared_memory::is_hung_up(link.as_fd()));
        assert!(connect_abstract(&[0; 32]).is_err());
    }

    #[test]
    fn a_private_socket_is_found_by_its_own_number_and_name_alone() {
        let base = tempfile::tempdir().unwrap();
        let steps = [std::ffi::OsStr::new("ours")];
        let directory = PrivateDir::open(base.path(), &steps, true).unwrap();
        let (place, other) = (name("pw-private"), name("pw-other"));
        // What somebody has left who was killed there is in nobody's way.
        std::fs::write(base.path().join(format!("ours/.{}", text_of(&place))), b"").unwrap();
        let ours = listen_private(&directory, &place).unwrap();
        assert_eq!(directory.list().unwrap(), [".", ".."]);
        let mode = rustix::fs::fstat(&ours.door).unwrap().st_mode;
        assert_eq!(mode & 0o777, 0o600);
        let pid = std::process::id().cast_signed();
        let number = |fd: &OwnedFd| fd.as_raw_fd().cast_unsigned();
        let kind = |number, name| connect_private(pid, number, name).unwrap_err().kind();
        let refused = io::ErrorKind::ConnectionRefused;
        assert_eq!(kind(number(&ours.door), &other), refused);
        assert_eq!(kind(number(&ours.listener), &place), refused);
        assert_eq!(kind(number(&ours.door), &[0; 32]), refused);
        assert!(matches!(
            accept(ours.listener.as_fd()),
            Ok(Accepted::Nothing)
        ));
        let link = connect_private(pid, number(&ours.door), &place).unwrap();
        introduce(link.as_fd(), 7).unwrap();
        let accepted = accept(ours.listener.as_fd());
        let Ok(Accepted::Peer(end)) = accepted else {
            panic!("{accepted:?}")
        };
        assert_eq!(introduced(end.as_fd()), Introduced::As(7));
        // A door without anybody behind it is closed.
        drop(ours.listener);
        assert_eq!(kind(number(&ours.door), &place), refused);
    }
}
