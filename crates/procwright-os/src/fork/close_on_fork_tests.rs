use std::io;
use std::net::{TcpListener, TcpStream};

use test_support::sys::is_closed_in_fork;

use super::*;

/// A socket: not a pipe, so its close may wait.
fn socket() -> OwnedFd {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    TcpStream::connect(listener.local_addr().unwrap())
        .unwrap()
        .into()
}

#[test]
fn what_is_closed_has_no_number_any_more() {
    let (reader, writer) = io::pipe().unwrap();
    for fd in [socket(), reader.into(), writer.into()] {
        let watched = rustix::io::fcntl_dupfd_cloexec(&fd, 0).unwrap();
        let before = rustix::fs::fstat(&watched).unwrap();
        let number = fd.as_raw_fd();
        drop(CloseOnFork::new(fd));
        // Another test may have taken the number since.
        // SAFETY: looked at, not used.
        let there = unsafe { BorrowedFd::borrow_raw(number) };
        let same = rustix::fs::fstat(there).is_ok_and(|now| now.st_ino == before.st_ino);
        assert!(!same);
    }
}

#[test]
fn more_than_one_block_of_them() {
    let all: Vec<_> = (0..3 * SLOTS)
        .map(|_| CloseOnFork::new(io::pipe().unwrap().0.into()))
        .collect();
    let numbers: Vec<_> = all.iter().map(|one| one.fd.as_raw_fd()).collect();
    assert!(is_closed_in_fork(numbers[0]));
    assert!(is_closed_in_fork(numbers[3 * SLOTS - 1]));
}
