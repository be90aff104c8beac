//! Closes that wait, and forks meanwhile. In a process of its own: a fork by another test
//! would hold both ends of the connection.

#![cfg(target_os = "linux")]

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use procwright_os::fork::CloseOnFork;
use test_support::sys::is_closed_in_fork;
use test_support::{alone, eventually, state};

/// A connection whose close waits until its other end, which reads nothing, is closed:
/// `SO_LINGER` with bytes that are not sent.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    let full = loop {
        if let Err(error) = ours.write_all(&[0; 1 << 16]) {
            break error;
        }
    };
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    let hour = Duration::from_secs(3600);
    rustix::net::sockopt::set_socket_linger(&ours, Some(hour)).unwrap();
    (ours.into(), theirs)
}

alone! {
    fn a_close_that_waits_holds_up_no_other_and_no_fork() {
        let (ours, theirs) = lingering();
        let number = ours.as_raw_fd();
        let waiting = CloseOnFork::new(ours);
        let (tell, told) = mpsc::channel();
        let closer = thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            drop(waiting);
        });
        let closes_in = told.recv().unwrap();
        eventually(|| state(closes_in) == Some('S'));
        let (done, is_done) = mpsc::channel();
        let other = thread::spawn(move || {
            let (reader, writer) = io::pipe().unwrap();
            let both = [reader.into(), writer.into()].map(CloseOnFork::new);
            drop(both);
            let closed = is_closed_in_fork(number);
            done.send(()).unwrap();
            closed
        });
        // A watchdog: the other end is closed after this, or never.
        let held_up = is_done.recv_timeout(Duration::from_secs(200));
        assert!(!closer.is_finished(), "the close did not wait");
        drop(theirs);
        assert_ne!(held_up, Err(RecvTimeoutError::Timeout), "it was held up");
        assert!(other.join().unwrap(), "the fork kept a copy");
        closer.join().unwrap();
    }
}
