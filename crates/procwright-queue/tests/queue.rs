//! Queues between processes: messages arrive, once, in order.
#![allow(clippy::disallowed_methods)] // Long sleeps of a receiver take time.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Overflow, Receiver, Sender};
use test_support::sys;

/// Forks a sender.
fn peer(receiver: &mut Receiver, work: impl FnOnce(Sender)) -> i32 {
    let invitation = receiver.invite().unwrap();
    sys::fork_pausing_after(move || work(Sender::attach(invitation).unwrap()))
}

/// The bytes of a message that is unlike all others.
fn message(sender: u64, number: u64, length: usize) -> Vec<u8> {
    let mut bytes = [sender.to_le_bytes(), number.to_le_bytes()].concat();
    let rest = (bytes.len()..length).map(|i| (i as u64 ^ number ^ sender) as u8);
    bytes.extend(rest);
    bytes
}

fn parse(bytes: &[u8]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (sender, sent) = (number(0), number(8));
    assert_eq!(
        bytes,
        message(sender, sent, bytes.len()),
        "not what was sent"
    );
    (sender, sent)
}

#[test]
fn messages_sent_are_received() {
    let mut receiver = Receiver::new().unwrap();
    let mut sender = receiver.sender().unwrap();
    for length in (0..100).chain([4096, 16 << 10, 100_000, 1 << 20, 1 << 24]) {
        let sent: Vec<u8> = (0..length).map(|i| i as u8).collect();
        sender.send(&sent).unwrap();
        assert_eq!(receiver.recv().unwrap(), sent);
    }
    assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
    let waited = receiver.recv_timeout(Duration::from_millis(20));
    assert!(matches!(waited, Err(Error::TimedOut)));
    drop(sender);
    assert!(matches!(receiver.recv(), Err(Error::Closed)));
    assert!(matches!(receiver.try_recv(), Err(Error::Closed)));
    // The wait has an end.
    let mut sender = receiver.sender().unwrap();
    sender.send(b"again").unwrap();
    assert_eq!(receiver.recv().unwrap(), b"again");
}

#[test]
fn many_are_sent_and_received_at_once() {
    let mut receiver = Receiver::new().unwrap();
    let mut sender = receiver.sender().unwrap();
    let sent: Vec<Vec<u8>> = (0..1000).map(|number| message(1, number, 50)).collect();
    let count = sender.send_many(sent.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(count, 1000);
    let mut received = Vec::new();
    while received.len() < 1000 {
        let batch = receiver.recv_many(300).unwrap();
        assert!((1..=300).contains(&batch.len()));
        received.extend(batch.iter().map(<[u8]>::to_vec));
    }
    assert_eq!(received, sent);
}

/// A lane is read for its quota, and then the others are: its remaining messages were seen
/// already, and are there all the same.
#[test]
fn a_look_sees_the_rest_of_a_lane_whose_quota_is_used_up() {
    let mut receiver = Receiver::new().unwrap();
    let mut senders = [receiver.sender().unwrap(), receiver.sender().unwrap()];
    for (number, sender) in (0..).zip(&mut senders) {
        let sent: Vec<Vec<u8>> = (0..600).map(|at| message(number, at, 16)).collect();
        sender.send_many(sent.iter().map(Vec::as_slice)).unwrap();
    }
    let mut next = [0, 0];
    for _ in 0..1200 {
        let (sender, number) = parse(&receiver.try_recv().unwrap());
        assert_eq!(number, next[sender as usize]);
        next[sender as usize] += 1;
    }
    assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
}

#[test]
fn a_message_is_made_in_place() {
    let mut receiver = Receiver::new().unwrap();
    let mut sender = receiver.sender().unwrap();
    let _ = sender.reserve(100).unwrap();
    let mut room = sender.reserve(8).unwrap();
    room.copy_from_slice(b"in place");
    room.commit();
    let mut room = sender.reserve(70_000).unwrap();
    room[..5].copy_from_slice(b"first");
    room.commit_first(5);
    assert_eq!(&*receiver.recv_view().unwrap(), b"in place");
    assert_eq!(&*receiver.recv_view().unwrap(), b"first");
    assert!(matches!(
        receiver.try_recv_view().map(|view| view.len()),
        Err(Error::Empty)
    ));
}

/// A message can be put back any number of times, wherever it lies, and the next receiver
/// gets it as well.
#[test]
fn a_message_put_back_is_the_next_one_again() {
    let mut receiver = Receiver::new().unwrap();
    let mut senders = [receiver.sender().unwrap(), receiver.sender().unwrap()];
    for round in 0..600_u64 {
        // Short messages are found beside the tail; others make the lane grow.
        for (number, sender) in (0..).zip(&mut senders) {
            let length = [16, 40, 500, 30_000][round as usize % 4];
            sender.send(&message(number, round, length)).unwrap();
        }
        let mut next = [0; 2];
        for _ in 0..2 {
            let view = receiver.recv_view().unwrap();
            let first = view.to_vec();
            view.put_back();
            let view = receiver.try_recv_view().unwrap();
            assert_eq!(*view, first);
            view.put_back();
            assert_eq!(receiver.recv().unwrap(), first);
            let (sender, number) = parse(&first);
            assert_eq!(number, round);
            next[sender as usize] += 1;
        }
        assert_eq!(next, [1, 1]);
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
    }
    // A lane is not free while it has a message.
    senders[0].send(b"last").unwrap();
    drop(senders);
    receiver.recv_view().unwrap().put_back();
    assert_eq!(receiver.recv().unwrap(), b"last");
    assert!(matches!(receiver.recv(), Err(Error::Closed)));
}

#[test]
fn messages_that_do_not_fit_are_errors() {
    let mut receiver = Options::new().fixed(4096).create().unwrap();
    let mut sender = receiver.sender().unwrap();
    let most = 4096 - 72;
    assert!(matches!(
        sender.send(&vec![0; most + 1]),
        Err(Error::TooLarge { most: 4024, .. })
    ));
    sender.send(&vec![7; most]).unwrap();
    assert!(matches!(sender.try_send(b""), Err(Error::Full)));
    let waited = sender.send_timeout(b"x", Duration::from_millis(20));
    assert!(matches!(waited, Err(Error::TimedOut)));
    sender.set_overflow(Overflow::Fail);
    assert!(matches!(sender.send(b"x"), Err(Error::Full)));
    sender.set_overflow(Overflow::DropNewest);
    sender.send(b"x").unwrap();
    assert_eq!(sender.send_many([&b"y"[..], b"z"]).unwrap(), 0);
    assert_eq!(sender.dropped(), 3);
    assert_eq!(receiver.recv().unwrap(), vec![7; most]);
    sender.send(b"after").unwrap();
    assert_eq!(receiver.recv().unwrap(), b"after");
}

#[test]
fn lanes_run_out_and_come_back() {
    let mut receiver = Options::new().lanes(2).create().unwrap();
    for round in 0..100u32 {
        let mut one = receiver.sender().unwrap();
        let mut two = one.try_clone().unwrap();
        assert!(matches!(one.try_clone(), Err(Error::NoLane(2))));
        one.send(b"one").unwrap();
        two.send(&round.to_le_bytes()).unwrap();
        drop((one, two));
        let mut all = [receiver.recv().unwrap(), receiver.recv().unwrap()];
        all.sort_by_key(Vec::len);
        assert_eq!(all, [b"one".to_vec(), round.to_le_bytes().to_vec()]);
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
    }
}

alone! {
    fn processes_send_in_their_order() {
        let mut receiver = Receiver::new().unwrap();
        let count = test_support::scaled(20_000, 1_000_000);
        let pids: Vec<i32> = (0..4)
            .map(|sender| {
                peer(&mut receiver, |mut queue| {
                    for number in 0..count {
                        let length = 16 + (number * 37 % 300) as usize;
                        queue.send(&message(sender, number, length)).unwrap();
                    }
                })
            })
            .collect();
        let mut next = [0; 4];
        loop {
            match receiver.recv() {
                Ok(bytes) => {
                    let (sender, number) = parse(&bytes);
                    assert_eq!(number, next[sender as usize]);
                    next[sender as usize] += 1;
                }
                Err(Error::Closed) => break,
                Err(error) => panic!("{error}"),
            }
            // The senders have left, and pause.
            if next == [count; 4] {
                pids.iter().for_each(|pid| sys::kill_and_reap(*pid));
            }
        }
        assert_eq!(next, [count; 4]);
    }
}

alone! {
    fn a_sender_waits_for_room() {
        let mut receiver = Options::new().fixed(4096).create().unwrap();
        let count = test_support::scaled(20_000, 1_000_000);
        let pid = peer(&mut receiver, |mut queue| {
            for number in 0..count {
                // Some messages need the whole ring.
                let length = if number % 100 == 0 { 4024 } else { 16 + (number * 7 % 900) as usize };
                queue.send(&message(0, number, length)).unwrap();
            }
        });
        for number in 0..count {
            assert_eq!(parse(&receiver.recv().unwrap()), (0, number));
        }
        sys::kill_and_reap(pid);
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
    }
}

alone! {
    fn a_sleeping_receiver_is_woken() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut receiver = Receiver::new().unwrap();
        let pid = peer(&mut receiver, |mut queue| {
            let mut number = 0;
            let mut byte = [0];
            // The sender sends on request; the receiver is in a short sleep or a long one.
            while matches!(std::io::Read::read(&mut &theirs, &mut byte), Ok(1)) {
                if byte == [1] {
                    std::thread::sleep(Duration::from_millis(30));
                }
                queue.send(&message(0, number, 16)).unwrap();
                number += 1;
            }
        });
        for number in 0..test_support::scaled(200, 20_000) {
            let long = u8::from(number % 10 == 0);
            std::io::Write::write_all(&mut &ours, &[long]).unwrap();
            assert_eq!(parse(&receiver.recv().unwrap()), (0, number));
        }
        sys::kill_and_reap(pid);
    }
}

alone! {
    fn an_invitation_goes_over_a_socket() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let mut queue = Sender::attach(Invitation::receive(&theirs).unwrap()).unwrap();
            queue.send(b"from there").unwrap();
            // The end of the pause alone closes the other end.
            std::mem::forget(queue);
        });
        let mut receiver = Receiver::new().unwrap();
        receiver.invite().unwrap().send(&ours).unwrap();
        assert_eq!(receiver.recv().unwrap(), b"from there");
        let waited = receiver.recv_timeout(Duration::from_millis(30));
        assert!(matches!(waited, Err(Error::TimedOut)));
        sys::kill_and_reap(pid);
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
    }
}

#[test]
fn parts_are_put_together_again() {
    let mut receiver = Receiver::new().unwrap();
    let invitation = receiver.invite().unwrap();
    let copies = || {
        invitation
            .files()
            .map(|fd| fd.try_clone_to_owned().unwrap())
    };
    let ticket = invitation.ticket();
    assert_eq!(ticket.len(), 28);
    let inherited = copies().map(|fd| sys::inheritable(&fd));
    let again = Invitation::from_parts(inherited, &ticket).unwrap();
    for fd in again.files() {
        let number = std::os::fd::AsRawFd::as_raw_fd(&fd);
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
        let flags = info
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .unwrap();
        let flags = i32::from_str_radix(flags.trim(), 8).unwrap();
        assert_ne!(flags & libc::O_CLOEXEC, 0);
    }
    let mut sender = Sender::attach(again).unwrap();
    sender.send(b"x").unwrap();
    assert_eq!(receiver.recv().unwrap(), b"x");
    for ticket in [
        "",
        "pwq1",
        &ticket[1..],
        &format!("{ticket}0"),
        &ticket.replace("pwq1", "pwq2"),
    ] {
        let wrong = Invitation::from_parts(copies(), ticket);
        assert!(matches!(wrong, Err(Error::Invalid(_))), "{ticket}");
    }
    // Tickets of another queue, and texts that are no tickets.
    let other = Receiver::new().unwrap().invite().unwrap().ticket();
    let wrong = Sender::attach(Invitation::from_parts(copies(), &other).unwrap());
    assert!(matches!(wrong, Err(Error::Invalid(_))), "{wrong:?}");
    let [_, link] = copies();
    let file = OwnedFd::from(tempfile::tempfile().unwrap());
    let wrong = Sender::attach(Invitation::from_parts([file, link], &ticket).unwrap());
    assert!(matches!(wrong, Err(Error::Invalid(_))), "{wrong:?}");
}

alone! {
    fn a_fork_cannot_use_an_end() {
        let mut receiver = Receiver::new().unwrap();
        let mut sender = receiver.sender().unwrap();
        sender.send(b"before").unwrap();
        let status = sys::in_fork(|| {
            assert!(matches!(sender.send(b"x"), Err(Error::Forked)));
            assert!(matches!(sender.try_clone(), Err(Error::Forked)));
            assert!(matches!(receiver.recv(), Err(Error::Forked)));
            assert!(matches!(receiver.invite(), Err(Error::Forked)));
            0
        });
        assert_eq!(status, 0);
        // A fork does not keep a queue alive, either.
        let pid = sys::fork_pausing();
        assert_eq!(receiver.recv().unwrap(), b"before");
        drop(sender);
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
        sys::kill_and_reap(pid);
    }
}

alone! {
    /// Neither the announced sleep nor a lent message belongs to the fork.
    fn a_fork_cannot_use_a_lent_message() {
        let mut receiver = Receiver::new().unwrap();
        let mut sender = receiver.sender().unwrap();
        receiver.readiness_fd().unwrap();
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        let status = sys::in_fork(|| {
            assert!(matches!(receiver.try_recv(), Err(Error::Forked)));
            assert!(matches!(receiver.recv(), Err(Error::Forked)));
            0
        });
        assert_eq!(status, 0);

        sender.send_many([&b"view"[..], b"batch", b"batch"]).unwrap();
        let mut view = Some(receiver.recv_view().unwrap());
        assert_eq!(sys::in_fork(|| { drop(view.take()); 0 }), 0);
        assert_eq!(&**view.as_ref().unwrap(), b"view");
        drop(view);
        let mut batch = Some(receiver.recv_many(2).unwrap());
        assert_eq!(sys::in_fork(|| { drop(batch.take()); 0 }), 0);
        assert_eq!(batch.as_ref().unwrap().len(), 2);
        drop(batch);

        let mut reserved = Some(sender.reserve(8).unwrap());
        let panics = |work: &mut dyn FnMut()| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err()
        };
        let status = sys::in_fork(|| {
            assert!(panics(&mut || reserved.as_mut().unwrap().fill(1)));
            assert!(panics(&mut || reserved.take().unwrap().commit()));
            0
        });
        assert_eq!(status, 0);
        let mut reserved = reserved.unwrap();
        reserved.copy_from_slice(b"reserved");
        reserved.commit();
        assert_eq!(receiver.recv().unwrap(), b"reserved");
    }
}

/// Lanes go while others are looked at: all messages are found all the same.
#[test]
fn no_lane_is_passed_over_while_others_go() {
    let mut next = test_support::random(1);
    for _ in 0..200 {
        let mut receiver = Receiver::new().unwrap();
        let mut senders = vec![receiver.sender().unwrap()];
        while senders.len() < 12 {
            let another = senders[0].try_clone().unwrap();
            senders.push(another);
        }
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        let one = next() as usize % senders.len();
        let gone = next();
        let (mut sends, mut stay) = (None, Vec::new());
        for (i, sender) in senders.drain(..).enumerate() {
            if i == one {
                sends = Some(sender);
            } else if gone >> i & 1 == 0 {
                stay.push(sender);
            }
        }
        sends.as_mut().unwrap().send(b"here").unwrap();
        assert_eq!(receiver.try_recv().unwrap(), b"here", "{one} {gone:b}");
    }
}

/// A batch counts for as many messages as it has.
#[test]
fn large_batches_starve_no_lane() {
    let mut receiver = Receiver::new().unwrap();
    let (mut flood, mut other) = (receiver.sender().unwrap(), receiver.sender().unwrap());
    for _ in 0..3000 {
        flood.send(b"flood").unwrap();
    }
    other.send(b"other").unwrap();
    let mut before = 0;
    loop {
        let batch = receiver.recv_many(300).unwrap();
        if batch.iter().any(|message| message == b"other") {
            break;
        }
        before += batch.len();
    }
    assert!(before <= 600, "{before}");
}

alone! {
    fn ends_that_a_fork_drops_change_nothing() {
        let mut receiver = Some(Receiver::new().unwrap());
        let mut sender = Some(receiver.as_mut().unwrap().sender().unwrap());
        assert_eq!(sys::in_fork(|| { drop((receiver.take(), sender.take())); 0 }), 0);
        let (mut receiver, mut sender) = (receiver.unwrap(), sender.unwrap());
        sender.send(b"x").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"x");
    }
}

alone! {
    /// A receiver's process has one thread beside the test's own: that of all liveness
    /// tokens.
    fn no_thread_is_started_for_a_queue() {
        let count = || test_support::Census::now().threads.len();
        let before = count();
        drop(procwright_liveness::Token::new().unwrap());
        assert_eq!(count(), before + 1);
        let mut receiver = Options::new().fixed(4096).create().unwrap();
        let invitation = receiver.invite().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let before = count();
            let mut sender = Sender::attach(invitation).unwrap();
            // The sender sleeps for room, too.
            (0..10_000).for_each(|_| sender.send(&[0; 100]).unwrap());
            assert_eq!(count(), before);
            sender.send(b"none").unwrap();
        });
        while receiver.recv().unwrap() != b"none" {}
        let _ = receiver.readiness_fd().unwrap();
        assert_eq!(count(), before + 1);
        sys::kill_and_reap(pid);
    }
}

alone! {
    fn no_thread_and_no_descriptor_is_left() {
        // The thread is that of all liveness tokens, and stays.
        drop(Receiver::new().unwrap());
        let before = test_support::Census::now();
        let mut receiver = Receiver::new().unwrap();
        let senders: Vec<_> = (0..10).map(|_| receiver.sender().unwrap()).collect();
        let clones: Vec<_> = senders.iter().map(|one| one.try_clone().unwrap()).collect();
        assert_eq!(test_support::Census::now().threads, before.threads);
        drop((receiver, senders, clones));
        before.unchanged();
    }
}

alone! {
    fn an_event_loop_is_told() {
        let mut receiver = Receiver::new().unwrap();
        let mut sender = receiver.sender().unwrap();
        sender.send(b"before").unwrap();
        let fd = receiver.readiness_fd().unwrap().try_clone_to_owned().unwrap();
        assert!(sys::readable(fd.as_fd()));
        assert_eq!(receiver.try_recv().unwrap(), b"before");
        for _ in 0..100 {
            assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
            assert!(!sys::readable(fd.as_fd()));
            sender.send(b"one").unwrap();
            sender.send(b"two").unwrap();
            assert!(sys::readable(fd.as_fd()));
            assert_eq!(receiver.try_recv().unwrap(), b"one");
            assert_eq!(receiver.try_recv().unwrap(), b"two");
        }
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        drop(sender);
        // A second look may be needed: a sender that leaves wakes the receiver as well.
        assert!(sys::readable(fd.as_fd()));
        if !matches!(receiver.try_recv(), Err(Error::Closed)) {
            assert!(sys::readable(fd.as_fd()));
        }
        assert!(matches!(receiver.try_recv(), Err(Error::Closed)));
        assert!(sys::readable(fd.as_fd()));
    }
}

/// No descriptor goes over such a socket, and its bytes are another protocol's.
#[test]
fn an_invitation_goes_over_no_other_kind_of_socket() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let there = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut here, _) = listener.accept().unwrap();
    let invitation = Receiver::new().unwrap().invite().unwrap();
    let refused = invitation.send(&there).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    (&there).write_all(b"theirs").unwrap();
    let refused = Invitation::receive(&here).unwrap_err();
    assert!(matches!(refused, Error::Io(_)), "{refused}");
    let mut bytes = [0; 6];
    here.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"theirs");
}

/// The tail was seen with the first message; between the two is a record that leads on.
#[test]
fn messages_behind_a_jump_or_a_skip_are_there_at_once() {
    for options in [Options::new().first(4096), Options::new().fixed(16384)] {
        let mut receiver = options.create().unwrap();
        let mut sender = receiver.sender().unwrap();
        for _ in 0..20 {
            sender
                .send_many([[1; 3000].as_slice(), &[2; 3000]])
                .unwrap();
            assert_eq!(receiver.try_recv().unwrap(), [1; 3000]);
            assert_eq!(receiver.try_recv().unwrap(), [2; 3000]);
            assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        }
    }
}

alone! {
    /// Each look is one of many, a moment apart: the end of a sender is seen within a few.
    fn a_receiver_that_looks_now_and_then_learns_of_the_end() {
        let mut receiver = Receiver::new().unwrap();
        let sender = receiver.sender().unwrap();
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        drop(sender);
        let mut looks = 0;
        test_support::eventually(|| {
            looks += 1;
            std::thread::sleep(std::time::Duration::from_millis(20));
            matches!(receiver.try_recv(), Err(Error::Closed))
        });
        assert!(looks < 10, "{looks}");
    }
}

alone! {
    /// One sender is always sending, so the receiver has no reason to sleep.
    fn processes_that_have_left_keep_no_descriptor() {
        let mut receiver = Receiver::new().unwrap();
        let mut busy = receiver.sender().unwrap();
        let before = test_support::fds().len();
        for _ in 0..100 {
            let mut sender = receiver.sender().unwrap();
            sender.send(b"").unwrap();
            drop(sender);
            busy.send(b"").unwrap();
            receiver.recv().unwrap();
            receiver.recv().unwrap();
        }
        assert!(test_support::fds().len() <= before + 2, "{:?}", test_support::fds());
    }
}

alone! {
    /// An invitation loses no wake-up.
    fn an_invitation_leaves_the_descriptor_readable() {
        let mut receiver = Receiver::new().unwrap();
        let mut sender = receiver.sender().unwrap();
        receiver.readiness_fd().unwrap();
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        sender.send(b"x").unwrap();
        assert!(sys::readable(receiver.readiness_fd().unwrap()));
        assert!(receiver.try_recv().is_ok());
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        let descriptor = receiver.readiness_fd().unwrap().try_clone_to_owned().unwrap();
        while receiver.try_recv().is_ok() {}
        assert!(!sys::readable(descriptor.as_fd()));
        sender.send(b"y").unwrap();
        let _other = receiver.invite().unwrap();
        assert!(sys::readable(descriptor.as_fd()));
    }
}
