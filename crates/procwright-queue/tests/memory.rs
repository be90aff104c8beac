//! The memory of queues, and that it is given back.

use std::os::unix::fs::MetadataExt;
use test_support::alone;

use procwright_queue::{Error, Options, Receiver};
use test_support::sys;

/// Memory that the file of a queue occupies.
fn occupied(receiver: &mut Receiver) -> u64 {
    let invitation = receiver.invite().unwrap();
    let file = invitation.files()[0].try_clone_to_owned().unwrap();
    std::fs::File::from(file).metadata().unwrap().blocks() * 512
}

#[test]
fn a_flood_is_given_back() {
    let flood = test_support::scaled(64 << 20, 1 << 30);
    let limit = 4 * flood as usize;
    let options = Options::new().limit(limit).keep(256 << 10);
    let mut receiver = options.create().unwrap();
    let mut sender = receiver.sender().unwrap();
    let message = vec![7; 60_000];
    let count = flood / 60_000;
    for _ in 0..count {
        sender.send(&message).unwrap();
    }
    let most = occupied(&mut receiver);
    assert!(most >= flood && most < limit as u64);
    for _ in 0..count {
        assert_eq!(&*receiver.recv_view().unwrap(), &message[..]);
    }
    let left = occupied(&mut receiver);
    test_support::figure(&format!(
        "{} KiB of {} KiB are left",
        left >> 10,
        most >> 10
    ));
    assert!(left <= 4 << 20, "{left}");
    // A sender that goes on comes back to what is kept: blocks of up to 256 KiB.
    for _ in 0..3000 {
        sender.send(&message[..1000]).unwrap();
        receiver.recv().unwrap();
    }
    let kept = occupied(&mut receiver);
    assert!(kept <= 600 << 10, "{kept}");
    drop(sender);
    while !matches!(receiver.try_recv(), Err(Error::Empty | Error::Closed)) {}
    assert!(occupied(&mut receiver) <= 64 << 10);
}

/// New memory is what makes the first messages of a queue slow. While the receiver keeps up
/// a lane has the memory of a few messages, and not that of its block.
#[test]
fn a_lane_whose_receiver_keeps_up_takes_little_memory() {
    for (length, most) in [(64 << 10, 288 << 10), (4 << 20, 10304 << 10)] {
        let mut receiver = Receiver::new().unwrap();
        let mut sender = receiver.sender().unwrap();
        let before = occupied(&mut receiver);
        let message = vec![7; length];
        for _ in 0..100 {
            sender.send(&message).unwrap();
            assert_eq!(receiver.recv_view().unwrap().len(), length);
        }
        let taken = occupied(&mut receiver) - before;
        test_support::figure(&format!(
            "messages of {} KiB take {} KiB",
            length >> 10,
            taken >> 10
        ));
        assert!(taken <= most, "{length}: {taken}");
    }
}

alone! {
    fn memory_of_a_thousand_idle_lanes() {
        let mut receiver = Options::new().lanes(1000).create().unwrap();
        let empty = occupied(&mut receiver);
        let before = test_support::status_bytes("VmRSS");
        let mut senders = vec![receiver.sender().unwrap()];
        while senders.len() < 1000 {
            let another = senders[0].try_clone().unwrap();
            senders.push(another);
        }
        let idle = occupied(&mut receiver);
        let idle_resident = test_support::status_bytes("VmRSS");
        for sender in &mut senders {
            sender.send(b"one").unwrap();
        }
        for _ in 0..1000 {
            assert_eq!(receiver.recv().unwrap(), b"one");
        }
        let used = occupied(&mut receiver);
        test_support::figure(&format!(
            "1000 lanes take {} KiB before they are taken, {} KiB idle, {} KiB after a message each; \
             resident in a process that has them all {} KiB more",
            empty >> 10, idle >> 10, used >> 10, (idle_resident - before) >> 10
        ));
        // Each lane has its page, and what is kept of it beside.
        assert!(idle_resident - before <= 1000 * 2 * 4096);
        // Each lane has a page and its first blocks.
        assert!(empty <= 256 << 10);
        assert!(idle <= empty + (1000 * 4096));
        assert!(used <= idle + (1000 * (16 << 10)));
        drop(senders);
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
        assert!(occupied(&mut receiver) <= empty + (1000 * 4096));
    }
}

/// Growth fails, and so does a new sender, in a queue with a lane; all the rest goes on.
fn no_memory(errno: i32) {
    let mut receiver = Receiver::new().unwrap();
    let mut sender = receiver.sender().unwrap();
    sender.send(b"before").unwrap();
    let is_it = |error: Error| match error {
        Error::Io(error) => assert_eq!(error.raw_os_error(), Some(errno)),
        other => panic!("{other}"),
    };
    sys::deny(&[libc::SYS_fallocate], errno);
    is_it(Receiver::new().unwrap_err());
    for _ in 0..3 {
        let mut sent = 0;
        let error = loop {
            match sender.send(&[0; 1000]) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        is_it(error);
        // The messages are in the block that is there.
        assert!((15..=16).contains(&sent), "{sent}");
        is_it(sender.send_many([&[0; 1000][..]]).unwrap_err());
        is_it(sender.reserve(1000).map(drop).unwrap_err());
        is_it(receiver.sender().unwrap_err());
        is_it(sender.try_clone().unwrap_err());
        while receiver.try_recv().is_ok() {}
    }
    sender.send(&[0; 1000]).unwrap();
    receiver.recv().unwrap();
}

alone! {
    /// A file system is full, or promised more than there may be.
    fn no_room_is_an_error() {
        no_memory(libc::ENOSPC);
    }
}

alone! {
    /// The kernel has `vm.overcommit_memory=2`.
    fn no_memory_is_an_error() {
        no_memory(libc::ENOMEM);
    }
}

/// A group of processes with a common limit of memory; none where no such group may be
/// made.
struct Cage(std::path::PathBuf);

impl Cage {
    fn new(bytes: u64) -> Option<Cage> {
        let name = format!("procwright-test-{}", std::process::id());
        for (root, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let cage = Cage(std::path::Path::new(root).join(&name));
            let is_made = std::fs::create_dir(&cage.0).is_ok();
            if is_made && std::fs::write(cage.0.join(limit), bytes.to_string()).is_ok() {
                return Some(cage);
            }
        }
        None
    }

    fn enter(&self) {
        std::fs::write(self.0.join("cgroup.procs"), "0").unwrap();
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

alone! {
    /// The kernel ends the process that takes too much, and not by SIGBUS; the receiver and
    /// the other senders go on.
    fn a_group_that_is_full_is_no_fault_of_others() {
        let Some(cage) = Cage::new(32 << 20) else {
            return test_support::say("no group of processes may be made here");
        };
        let mut receiver = Options::new().limit(1 << 30).create().unwrap();
        let mut other = receiver.sender().unwrap();
        let invitation = receiver.invite().unwrap();
        let pid = sys::fork_that(|| {
            cage.enter();
            let mut sender = procwright_queue::Sender::attach(invitation).unwrap();
            let error = loop {
                if let Err(error) = sender.send(&[7; 60_000]) {
                    break error;
                }
            };
            assert!(matches!(error, Error::Io(_)), "{error}");
        });
        let status = sys::reap(pid);
        let is_told = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        let is_killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
        assert!(is_told || is_killed, "{status:#x}");
        other.send(b"other").unwrap();
        drop(other);
        let (mut count, mut others) = (0, 0);
        loop {
            match receiver.recv_view().as_deref() {
                Ok(b"other") => others += 1,
                Ok(message) => {
                    assert!(message == [7; 60_000]);
                    count += 1;
                }
                Err(Error::Closed) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(others, 1);
        assert!(count > 100, "{count}");
        test_support::figure(&format!("{count} messages of 60 kB in 32 MiB, then {status:#x}"));
        receiver.sender().unwrap().send(b"again").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"again");
    }
}

alone! {
    fn a_limit_on_files_is_an_error() {
        sys::limit_file_size(1 << 20);
        let error = Receiver::new().unwrap_err();
        assert!(matches!(error, Error::Io(_)), "{error}");
    }
}

alone! {
    fn a_limit_on_addresses_is_an_error() {
        let mut receiver = Options::new().limit(1 << 30).create().unwrap();
        let invitations: Vec<_> = (0..3).map(|_| receiver.invite().unwrap()).collect();
        sys::limit_addresses(1 << 31);
        let mut senders = Vec::new();
        let mut refused = 0;
        for invitation in invitations {
            match procwright_queue::Sender::attach(invitation) {
                Ok(sender) => senders.push(sender),
                Err(Error::Io(error)) => {
                    assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(refused > 0);
        // A lane that cannot be mapped now can be later.
        for sender in &mut senders {
            let _ = sender.send(b"x");
        }
        let first = receiver.try_recv();
        assert!(matches!(first, Ok(_) | Err(Error::Io(_))), "{first:?}");
    }
}

alone! {
    /// The sender dies while the receiver cannot map its lane: the lane is taken back
    /// later.
    fn a_lane_that_was_never_mapped_comes_back() {
        let mut receiver = Options::new().lanes(1).limit(1 << 31).create().unwrap();
        let invitation = receiver.invite().unwrap();
        let pid = sys::fork_pausing_after(move || {
            let mut sender = procwright_queue::Sender::attach(invitation).unwrap();
            sender.send(b"x").unwrap();
            std::mem::forget(sender);
        });
        sys::limit_addresses(1 << 30);
        while matches!(receiver.try_recv(), Err(Error::Empty)) {}
        sys::kill(pid, libc::SIGKILL);
        sys::reap(pid);
        // The receiver asks once in a while which senders are gone.
        for _ in 0..5000 {
            assert!(matches!(receiver.try_recv(), Err(Error::Io(_))));
        }
        sys::limit_addresses(u64::MAX);
        // The sender may have been killed before it sent.
        let _ = receiver.try_recv();
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
        receiver.sender().unwrap().send(b"y").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"y");
    }
}
