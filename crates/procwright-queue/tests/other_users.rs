//! What another user of the machine can do to a queue: nothing.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::{alone, sys};

const NOBODY: u32 = 65534;

/// More than any listener lets wait.
const MANY: usize = 6000;

const LONG: Duration = Duration::from_secs(100);

/// Starts a process of another user, which does `harm` and then holds on to what it has.
/// `owner` gets what `harm` has counted; it is not called where there is no such process.
fn with_another_user(test: &str, harm: impl FnOnce() -> usize, owner: impl FnOnce(usize)) {
    if sys::effective_uid() != 0 || sys::all_files() < MANY as u64 + 100 {
        return test_support::skip(test, "not root, or too few descriptors");
    }
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        sys::become_user(NOBODY);
        theirs.write_all(&harm().to_le_bytes()).unwrap();
    });
    let mut counted = [0; 8];
    ours.read_exact(&mut counted).unwrap();
    owner(usize::from_le_bytes(counted));
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
}

fn with_names(test: impl FnOnce()) {
    let directory = tempfile::tempdir().unwrap();
    sys::set_variable("PROCWRIGHT_QUEUE_DIR", &directory.path().join("queues"));
    test();
}

/// An invitation to a queue of a process that can be killed.
fn abandoned_queue() -> (Invitation, i32) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let mut receiver = Receiver::new().unwrap();
        receiver.invite().unwrap().send(&theirs).unwrap();
        std::mem::forget(receiver);
    });
    (Invitation::receive(&ours).unwrap(), pid)
}

fn connected(address: &SocketAddrUnix) -> Option<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    connect(&socket, address).ok().map(|()| socket)
}

/// Connects to all that listen under a name in no directory, as often as it is let, and
/// keeps that. How many of them take no more.
fn crowd_all() -> usize {
    let all = std::fs::read_to_string("/proc/net/unix").unwrap();
    let names = all.lines().filter_map(|line| line.split(" @").nth(1));
    let ours = names.filter(|name| name.starts_with("procwright-"));
    let is_full = |name: &str| {
        let address = SocketAddrUnix::new_abstract_name(name.trim_end().as_bytes()).unwrap();
        let held: Vec<_> = (0..MANY).map_while(|_| connected(&address)).collect();
        let count = held.len();
        std::mem::forget(held);
        (1..MANY).contains(&count)
    };
    ours.filter(|name| is_full(name)).count()
}

alone! {
    /// It holds so many connections that the system lets nobody connect any more.
    fn who_crowds_the_door_keeps_no_sender_out() {
        with_names(|| {
            let mut receiver = Options::new().lanes(4).open("a").unwrap();
            with_another_user("who_crowds_the_door_keeps_no_sender_out", crowd_all, |full| {
                assert!(full > 0, "nothing was crowded");
                for round in 0..20_u8 {
                    let opened = Sender::open("a");
                    let mut sender = opened.unwrap_or_else(|error| panic!("{round}: {error}"));
                    sender.send(&[round]).unwrap();
                    drop(sender);
                    assert_eq!(receiver.recv_timeout(LONG).unwrap(), [round]);
                }
            });
        });
    }
}

alone! {
    /// Nor those who come to another receiver when the first one has died, of a queue
    /// without a name.
    fn who_crowds_the_door_keeps_nobody_from_the_next_receiver() {
        with_names(|| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let pid = sys::fork_pausing_after(|| {
                let mut receiver = Receiver::new().unwrap();
                for _ in 0..2 {
                    receiver.invite().unwrap().send(&theirs).unwrap();
                }
                std::mem::forget(receiver);
            });
            let mut sender = Sender::attach(Invitation::receive(&ours).unwrap()).unwrap();
            let invitation = Invitation::receive(&ours).unwrap();
            sys::kill(pid, libc::SIGKILL);
            sys::reap(pid);
            let mut receiver = Receiver::take_over(&invitation).unwrap();
            let test = "who_crowds_the_door_keeps_nobody_from_the_next_receiver";
            with_another_user(test, crowd_all, |full| {
                assert!(full > 0, "nothing was crowded");
                sender.send(b"on").unwrap();
                assert_eq!(receiver.recv_timeout(LONG).unwrap(), b"on");
            });
        });
    }
}

alone! {
    /// Nobody but who may look into the receiver comes to its other door.
    fn another_user_finds_no_other_door() {
        with_names(|| {
            let _receiver = Receiver::open("a").unwrap();
            let owner = std::process::id();
            let try_all = || {
                let door = |number| format!("/proc/{owner}/fd/{number}");
                let doors = (0..200).map(|number| SocketAddrUnix::new(door(number)).unwrap());
                doors.filter_map(|door| connected(&door)).count()
            };
            assert!(try_all() > 0, "there is none");
            with_another_user("another_user_finds_no_other_door", try_all, |came| {
                assert_eq!(came, 0);
            });
            // Nothing of it lies in the directory.
            let names = std::fs::read_dir(std::env::var("PROCWRIGHT_QUEUE_DIR").unwrap());
            assert_eq!(names.unwrap().count(), 1);
        });
    }
}

alone! {
    /// Who has no directory of names listens under the name that all see.
    fn a_receiver_that_cannot_listen_in_private_is_found_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("queues");
        std::fs::write(&file, b"").unwrap();
        sys::set_variable("PROCWRIGHT_QUEUE_DIR", &file);
        let (invitation, pid) = abandoned_queue();
        sys::kill(pid, libc::SIGKILL);
        sys::reap(pid);
        let mut receiver = Receiver::take_over(&invitation).unwrap();
        let mut sender = Sender::attach(invitation).unwrap();
        sender.send(b"on").unwrap();
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), b"on");
        drop(sender);
        assert!(matches!(receiver.recv_timeout(LONG), Err(Error::Closed)));
    }
}
