//! Lanes that are left, and the senders that want them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Sender};
use test_support::sys;

fn kill_and_reap(pid: i32) {
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
}

alone! {
    /// The lock of the lane is not held any more by the process, which lives and has
    /// another one.
    fn a_lane_that_one_sender_has_left_is_free_for_other_processes() {
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
        kill_and_reap(pid);
    }
}

alone! {
    /// A sender that leaves wakes a receiver that sleeps until then.
    fn a_lane_that_is_left_is_free_although_the_receiver_sleeps() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let mut receiver = Options::new().lanes(2).create().unwrap();
            receiver.invite().unwrap().send(&theirs).unwrap();
            let _ = receiver.recv();
        });
        let kept = Sender::attach(Invitation::receive(&ours).unwrap()).unwrap();
        for _ in 0..test_support::scaled(3, 300) {
            let mut other = None;
            test_support::eventually(|| {
                other = kept.try_clone().ok();
                other.is_some()
            });
            // The receiver sleeps on its descriptor, which nothing else ends.
            test_support::eventually(|| {
                let call = std::fs::read_to_string(format!("/proc/{pid}/syscall"));
                let number = call.unwrap_or_default();
                let number = number.split(' ').next().and_then(|call| call.parse().ok());
                number.is_some_and(sys::is_waiting_call)
            });
            drop(other);
        }
        kill_and_reap(pid);
    }
}
