//! What queues take, and that it is given back.

mod common;

use std::os::unix::fs::MetadataExt;

use common::sys;
use procwright::queue::{Error, Options, Receiver};

/// What the file of a queue occupies.
fn occupied(receiver: &mut Receiver) -> u64 {
    let invitation = receiver.invite().unwrap();
    let file = invitation.files()[0].try_clone_to_owned().unwrap();
    std::fs::File::from(file).metadata().unwrap().blocks() * 512
}

#[test]
fn a_flood_is_given_back() {
    let flood = common::scaled(64 << 20, 1 << 30);
    let limit = 4 * flood as usize;
    let mut receiver = Options::new().limit(limit).create().unwrap();
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
    common::figure(&format!(
        "{} KiB of {} KiB are left",
        left >> 10,
        most >> 10
    ));
    assert!(left <= 4 << 20, "{left}");
    // Whoever goes on comes back to what is kept: blocks of up to 256 KiB.
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

alone! {
    fn what_a_thousand_idle_lanes_take() {
        let mut receiver = Options::new().lanes(1000).create().unwrap();
        let empty = occupied(&mut receiver);
        let mut senders = vec![receiver.sender().unwrap()];
        while senders.len() < 1000 {
            let another = senders[0].try_clone().unwrap();
            senders.push(another);
        }
        let idle = occupied(&mut receiver);
        for sender in &mut senders {
            sender.send(b"one").unwrap();
        }
        for _ in 0..1000 {
            assert_eq!(receiver.recv().unwrap(), b"one");
        }
        let used = occupied(&mut receiver);
        common::figure(&format!(
            "1000 lanes take {} KiB before they are taken, {} KiB idle, {} KiB after a message each",
            empty >> 10, idle >> 10, used >> 10
        ));
        // A page each, and their first blocks.
        assert!(empty <= 256 << 10);
        assert!(idle <= empty + (1000 * 4096));
        assert!(used <= idle + (1000 * (16 << 10)));
        drop(senders);
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
        assert!(occupied(&mut receiver) <= empty + (1000 * 4096));
    }
}

alone! {
    fn no_memory_is_an_error() {
        let mut receiver = Receiver::new().unwrap();
        let mut sender = receiver.sender().unwrap();
        sender.send(b"before").unwrap();
        sys::deny(&[libc::SYS_fallocate], libc::ENOSPC);
        let mut sent = 1;
        let error = loop {
            match sender.send(&[0; 1000]) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        match error {
            Error::Io(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSPC)),
            other => panic!("{other}"),
        }
        // In the block that is there.
        assert_eq!(sent, 17);
        let error = receiver.sender().unwrap_err();
        assert!(matches!(error, Error::Io(_)), "{error}");
        for _ in 0..sent {
            receiver.recv().unwrap();
        }
        sender.send(&[0; 1000]).unwrap();
        receiver.recv().unwrap();
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
            match procwright::queue::Sender::attach(invitation) {
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
    /// Its sender dies while the receiver cannot map it: it is taken back later.
    fn a_lane_that_was_never_mapped_comes_back() {
        let mut receiver = Options::new().lanes(1).limit(1 << 31).create().unwrap();
        let invitation = receiver.invite().unwrap();
        let pid = sys::fork_pausing_after(move || {
            let mut sender = procwright::queue::Sender::attach(invitation).unwrap();
            sender.send(b"x").unwrap();
            std::mem::forget(sender);
        });
        sys::limit_addresses(1 << 30);
        while matches!(receiver.try_recv(), Err(Error::Empty)) {}
        sys::kill(pid, libc::SIGKILL);
        sys::reap(pid);
        // Once in a while it asks who is gone.
        for _ in 0..5000 {
            assert!(matches!(receiver.try_recv(), Err(Error::Io(_))));
        }
        sys::limit_addresses(u64::MAX);
        // It may have been killed before it sent.
        let _ = receiver.try_recv();
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
        receiver.sender().unwrap().send(b"y").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"y");
    }
}
