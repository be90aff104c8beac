//! Lanes that are left, and those who want them.

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use common::sys;
use procwright::queue::{Error, Invitation, Options, Sender};

fn end(pid: i32) {
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
}

alone! {
    /// Its lock is not the process's any more, which lives and has another.
    fn what_one_sender_has_left_is_another_processs() {
        let mut receiver = Options::new().lanes(2).create().unwrap();
        let invitation = receiver.invite().unwrap();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let kept = Sender::attach(invitation).unwrap();
            drop(kept.try_clone().unwrap());
            theirs.write_all(b".").unwrap();
            std::mem::forget(kept);
        });
        ours.read_exact(&mut [0]).unwrap();
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        let mut sender = receiver.sender().unwrap();
        sender.send(b"x").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"x");
        end(pid);
    }
}

alone! {
    /// Who leaves says so to a receiver that sleeps for as long as nobody does.
    fn what_one_leaves_is_to_be_had_although_the_receiver_sleeps() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let mut receiver = Options::new().lanes(2).create().unwrap();
            receiver.invite().unwrap().send(&theirs).unwrap();
            let _ = receiver.recv();
        });
        let kept = Sender::attach(Invitation::receive(&ours).unwrap()).unwrap();
        for _ in 0..common::scaled(3, 300) {
            let mut other = None;
            common::eventually(|| {
                other = kept.try_clone().ok();
                other.is_some()
            });
            // Of its two ways to sleep that which nothing else ends.
            common::eventually(|| {
                let call = std::fs::read_to_string(format!("/proc/{pid}/syscall"));
                let number = call.unwrap_or_default();
                let number = number.split(' ').next().and_then(|call| call.parse().ok());
                number.is_some_and(sys::is_waiting_call)
            });
            drop(other);
        }
        end(pid);
    }
}
