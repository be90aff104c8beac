//! Queues in which a process has left nonsense.

use std::fs::File;
use std::os::unix::fs::FileExt;
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};

// Offsets with the usual options, as docs/reference/queue-format.md has them.
const VERSION: u64 = 8;
const SLEEP: u64 = 1_245_184;
const TAIL_OF_FIRST: u64 = 1_310_720;
const FIRST_BLOCK: u64 = 1_376_256;

/// The queue's file, which any invited process can write to.
fn file(invitation: &Invitation) -> File {
    invitation.files()[0].try_clone_to_owned().unwrap().into()
}

fn two() -> (Receiver, File, Sender, Sender) {
    let mut receiver = Receiver::new().unwrap();
    let file = file(&receiver.invite().unwrap());
    let mut first = receiver.sender().unwrap();
    let mut second = receiver.sender().unwrap();
    for sender in [&mut first, &mut second] {
        sender.send(b"before").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"before");
    }
    (receiver, file, first, second)
}

#[test]
fn damage_is_of_one_lane() {
    let damages: [(u64, &[u8]); 4] = [
        (TAIL_OF_FIRST, &[0xee; 8]),
        (TAIL_OF_FIRST, &[0; 8]),
        (TAIL_OF_FIRST, &100_000u64.to_le_bytes()),
        // The record of the next message.
        (FIRST_BLOCK + 16, &[0xff; 8]),
    ];
    for (at, bytes) in damages {
        let (mut receiver, file, mut first, mut second) = two();
        if at >= FIRST_BLOCK {
            // The message is too long for the mailbox.
            first.send(&[b'x'; 200]).unwrap();
        }
        file.write_all_at(bytes, at).unwrap();
        let ours = Some(std::process::id().cast_signed());
        match receiver.recv() {
            Err(Error::Damaged { lane: 0, peer, .. }) => assert_eq!(peer, ours),
            other => panic!("{other:?}"),
        }
        for number in 0..1000u32 {
            second.send(&number.to_le_bytes()).unwrap();
            assert_eq!(receiver.recv().unwrap(), number.to_le_bytes());
        }
        let error = std::iter::repeat_with(|| first.send(&[0; 1000]))
            .find_map(Result::err)
            .unwrap();
        assert!(matches!(error, Error::Damaged { lane: 0, .. }), "{error}");
        // The lane is good again once its sender is gone.
        drop((first, second));
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
        let mut next = receiver.sender().unwrap();
        next.send(b"next").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"next");
    }
}

/// Nonsense that the last sender has left in a lane is not the next one's fault.
#[test]
fn a_new_sender_finds_another_lane() {
    for spoilt in [0xeeee_eeee_eeee_eeee, (1 << 59) - 1] {
        let mut receiver = Receiver::new().unwrap();
        let file = file(&receiver.invite().unwrap());
        file.write_all_at(&u64::to_le_bytes(spoilt), TAIL_OF_FIRST)
            .unwrap();
        let mut senders = vec![receiver.sender().unwrap()];
        senders[0].send(b"fine").unwrap();
        loop {
            match receiver.recv() {
                Ok(bytes) => break assert_eq!(bytes, b"fine"),
                Err(Error::Damaged { lane: 0, peer, .. }) => assert_eq!(peer, None),
                Err(other) => panic!("{other}"),
            }
        }
        while !matches!(receiver.try_recv(), Err(Error::Empty)) {}
        // The damaged lane has been cleared.
        while senders.len() < 64 {
            let another = senders[0].try_clone().unwrap();
            senders.push(another);
        }
        for sender in &mut senders {
            sender.send(b"fine").unwrap();
            assert_eq!(receiver.recv().unwrap(), b"fine");
        }
    }
}

/// Any bytes lead to no panic, and have an end.
#[test]
fn random_bytes_do_no_harm() {
    let mut next = test_support::random(1);
    for _ in 0..test_support::scaled(300, 20_000) {
        let (mut receiver, file, mut first, mut second) = two();
        for _ in 0..next() % 20 {
            let _ = first.try_send(&vec![0; (next() % 3000) as usize]);
            let at = match next() % 4 {
                0 => TAIL_OF_FIRST + next() % 8,
                1 => SLEEP,
                _ => FIRST_BLOCK + next() % 100_000,
            };
            let bytes: Vec<u8> = (0..next() % 9).map(|_| next() as u8).collect();
            file.write_all_at(&bytes, at).unwrap();
            while receiver.try_recv().is_ok() {}
        }
        second.send(b"harmed?").unwrap();
        loop {
            match receiver.try_recv() {
                Ok(bytes) if bytes == b"harmed?" => break,
                Ok(_) | Err(Error::Damaged { lane: 0, .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn files_that_are_no_queue_are_refused() {
    let mut receiver = Options::new().create().unwrap();
    let spoilt = |receiver: &mut Receiver, at: u64, other: fn(u8) -> u8| {
        let invitation = receiver.invite().unwrap();
        let file = file(&invitation);
        let mut before = [0];
        file.read_exact_at(&mut before, at).unwrap();
        file.write_all_at(&[other(before[0])], at).unwrap();
        let refused = Sender::attach(invitation).unwrap_err();
        file.write_all_at(&before, at).unwrap();
        refused
    };
    assert!(matches!(
        spoilt(&mut receiver, VERSION, |_| 2),
        Error::WrongVersion(2)
    ));
    for at in [0, 12, 16, 20, 24, 28, 32, 40, 48] {
        let refused = spoilt(&mut receiver, at, |byte| byte ^ 0x77);
        assert!(matches!(refused, Error::Invalid(_)), "{at}: {refused}");
    }
    receiver.sender().unwrap().send(b"fine").unwrap();
    assert_eq!(receiver.recv().unwrap(), b"fine");
}

alone! {
    /// A load from huge pages is a SIGBUS where the system has none.
    fn huge_pages_are_refused() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        // Some kernels have no such files.
        let Ok(huge) = memfd_create("huge", flags) else { return };
        ftruncate(&huge, 64 << 20).unwrap();
        fcntl_add_seals(&huge, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
        let invitation = Receiver::new().unwrap().invite().unwrap();
        let link = invitation.files()[1].try_clone_to_owned().unwrap();
        let forged = Invitation::from_parts([huge, link], &invitation.ticket()).unwrap();
        let refused = Sender::attach(forged).unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    }
}

alone! {
    fn the_file_cannot_be_cut_short() {
        let mut receiver = Receiver::new().unwrap();
        let file = file(&receiver.invite().unwrap());
        let size = file.metadata().unwrap().len();
        assert!(file.set_len(0).is_err());
        assert!(file.set_len(size + 1).is_err());
        receiver.sender().unwrap().send(b"x").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"x");
    }
}
