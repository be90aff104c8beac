//! Receivers that die, and others that take over.
#![allow(clippy::disallowed_methods)] // What does not happen takes time.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::sys;

/// Forks a receiver, which does some work and then pauses, and takes so many invitations
/// from it.
fn receiving<const COUNT: usize>(
    options: Options,
    work: impl FnOnce(&mut Receiver, &mut UnixStream),
) -> (i32, [Invitation; COUNT], UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let mut receiver = options.create().unwrap();
        for _ in 0..COUNT {
            receiver.invite().unwrap().send(&theirs).unwrap();
        }
        work(&mut receiver, &mut theirs);
        std::mem::forget(receiver);
    });
    let invitations = [(); COUNT].map(|()| Invitation::receive(&ours).unwrap());
    (pid, invitations, ours)
}

/// Waits until the process says that it has got there.
fn await_word(from: &mut UnixStream) {
    from.read_exact(&mut [0]).unwrap();
}

fn say_word(to: &mut UnixStream) {
    to.write_all(b".").unwrap();
}

/// Waits until the thread with this number, in whatever process, is in that call.
fn until_in(thread: i32, number: i64) {
    test_support::eventually(|| {
        let call = std::fs::read_to_string(format!("/proc/{thread}/syscall"));
        call.is_ok_and(|call| call.starts_with(&format!("{number} ")))
    });
}

/// Waits until a receiver's thread sleeps on its descriptor.
fn until_in_long_sleep(thread: i32) {
    test_support::eventually(|| {
        let call = std::fs::read_to_string(format!("/proc/{thread}/syscall"));
        let call = call.unwrap_or_default();
        let number = call
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok());
        number.is_some_and(sys::is_waiting_call)
    });
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// Receives all that is there now.
fn drain(receiver: &mut Receiver) -> Vec<u64> {
    let mut all = Vec::new();
    loop {
        match receiver.try_recv() {
            Ok(bytes) => all.push(number(&bytes)),
            Err(Error::Empty | Error::Closed) => return all,
            Err(error) => panic!("{error}"),
        }
    }
}

alone! {
    fn messages_not_received_are_there_and_none_comes_twice() {
        let (pid, [ours, next], mut peer) = receiving(Options::new(), |receiver, peer| {
            for expected in 0..5u64 {
                assert_eq!(number(&receiver.recv().unwrap()), expected);
            }
            // The batch is handed out and not received.
            let batch = receiver.recv_many(3).unwrap();
            assert_eq!(batch.len(), 3);
            std::mem::forget(batch);
            say_word(peer);
        });
        let mut sender = Sender::attach(ours).unwrap();
        sender.send_many((0..20u64).map(u64::to_le_bytes).collect::<Vec<_>>().iter().map(|bytes| &bytes[..])).unwrap();
        await_word(&mut peer);
        assert!(matches!(Receiver::take_over(&next), Err(Error::ReceiverAlive { pid: Some(its) }) if its == pid));
        sys::kill_and_reap(pid);
        assert!(matches!(sender.send(b"x"), Err(Error::ReceiverDead)));
        let mut receiver = Receiver::take_over(&next).unwrap();
        assert_eq!(drain(&mut receiver), (5..20).collect::<Vec<_>>());
        // The sender goes on in the same lane, without being told.
        sender.send(&20u64.to_le_bytes()).unwrap();
        assert_eq!(number(&receiver.recv().unwrap()), 20);
        assert!(matches!(Receiver::take_over(&next), Err(Error::ReceiverAlive { .. })));
        drop(sender);
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
        // An invitation that was used to take over is good for a sender as well.
        let mut late = Sender::attach(next).unwrap();
        late.send(&21u64.to_le_bytes()).unwrap();
        assert_eq!(number(&receiver.recv().unwrap()), 21);
    }
}

alone! {
    /// The lanes say how far the dead receiver had read, from growth to growth.
    fn nothing_comes_twice_whatever_the_sizes() {
        let options = Options::new().first(4096).limit(1 << 22);
        for round in 0..test_support::scaled(20, 500) {
            let (pid, [ours, next], mut peer) = receiving(options, |receiver, peer| {
                for expected in 0..round * 7 {
                    assert_eq!(number(&receiver.recv().unwrap()), expected);
                }
                say_word(peer);
            });
            let mut sender = Sender::attach(ours).unwrap();
            for at in 0..150u64 {
                let mut bytes = vec![at as u8; 8 + (at * 977 % 20_011) as usize];
                bytes[..8].copy_from_slice(&at.to_le_bytes());
                sender.send(&bytes).unwrap();
            }
            if round * 7 <= 150 {
                await_word(&mut peer);
            }
            sys::kill_and_reap(pid);
            let mut receiver = Receiver::take_over(&next).unwrap();
            assert_eq!(drain(&mut receiver), ((round * 7).min(150)..150).collect::<Vec<_>>());
        }
    }
}

alone! {
    fn a_closed_queue_is_not_taken_over() {
        let mut receiver = Receiver::new().unwrap();
        let invitation = receiver.invite().unwrap();
        drop(receiver);
        assert!(matches!(Receiver::take_over(&invitation), Err(Error::Closed)));
    }
}

alone! {
    /// A sender that waits for room is told of the death, and goes on when there is another
    /// receiver.
    fn a_sender_that_waits_goes_on_with_the_next() {
        let options = Options::new().fixed(4096);
        let (pid, [ours, next], _peer) = receiving(options, |_, _| {});
        let mut sender = Sender::attach(ours).unwrap();
        let mut count = 0u64;
        while sender.try_send(&count.to_le_bytes()).is_ok() {
            count += 1;
        }
        std::thread::scope(|scope| {
            let (told, thread) = std::sync::mpsc::channel();
            let (go, gone) = std::sync::mpsc::channel::<()>();
            let sender = &mut sender;
            scope.spawn(move || {
                told.send(sys::thread_id()).unwrap();
                assert!(matches!(sender.send(&count.to_le_bytes()), Err(Error::ReceiverDead)));
                told.send(0).unwrap();
                gone.recv().unwrap();
                // There is no room yet.
                for next in count..count + 1000 {
                    sender.send(&next.to_le_bytes()).unwrap();
                }
            });
            let (said, thread) = (&thread, thread.recv().unwrap());
            until_in(thread, libc::SYS_futex_waitv);
            sys::kill_and_reap(pid);
            // The sender is told before there is another receiver: with one it might just
            // go on.
            said.recv().unwrap();
            let mut receiver = Receiver::take_over(&next).unwrap();
            go.send(()).unwrap();
            until_in(thread, libc::SYS_futex_waitv);
            for expected in 0..count + 1000 {
                assert_eq!(number(&receiver.recv().unwrap()), expected);
            }
        });
    }
}

alone! {
    /// The receiver has read all and was killed before it said so: the sender has room
    /// then, and no other process would wake it.
    fn room_that_a_dead_receiver_has_made_is_told_of() {
        let options = Options::new().fixed(4096);
        let (pid, [ours, next], mut peer) = receiving(options, |receiver, peer| {
            let mut count = [0; 8];
            peer.read_exact(&mut count).unwrap();
            std::mem::forget(receiver.recv_many(number(&count) as usize).unwrap());
            say_word(peer);
        });
        let mut sender = Sender::attach(ours).unwrap();
        let mut count = 0u64;
        while sender.try_send(&count.to_le_bytes()).is_ok() {
            count += 1;
        }
        peer.write_all(&count.to_le_bytes()).unwrap();
        await_word(&mut peer);
        sys::kill_and_reap(pid);
        let mut receiver = Receiver::take_over(&next).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| sender.send(&count.to_le_bytes()).unwrap());
            for expected in 0..=count {
                assert_eq!(number(&receiver.recv().unwrap()), expected);
            }
        });
    }
}

alone! {
    /// The message was made before the death and is sent after the next receiver has gone
    /// to sleep: the sender has not looked in between.
    fn a_commit_across_a_takeover_wakes_the_next_receiver() {
        for watched in [false, true] {
            let (pid, [ours, next], _peer) = receiving(Options::new(), |_, _| {});
            let mut sender = Sender::attach(ours).unwrap();
            let mut room = sender.reserve(8).unwrap();
            room.copy_from_slice(&7u64.to_le_bytes());
            sys::kill_and_reap(pid);
            let mut receiver = Receiver::take_over(&next).unwrap();
            std::thread::scope(|scope| {
                let (told, thread) = std::sync::mpsc::channel();
                let receiver = &mut receiver;
                let receiving = scope.spawn(move || {
                    if !watched {
                        told.send(sys::thread_id()).unwrap();
                        return receiver.recv().unwrap();
                    }
                    let fd = receiver.readiness_fd().unwrap().try_clone_to_owned().unwrap();
                    while !matches!(receiver.try_recv(), Err(Error::Empty)) {}
                    told.send(sys::thread_id()).unwrap();
                    loop {
                        while !sys::readable(fd.as_fd()) {
                            std::thread::yield_now();
                        }
                        match receiver.try_recv() {
                            Err(Error::Empty) => {}
                            other => return other.unwrap(),
                        }
                    }
                });
                let thread = thread.recv().unwrap();
                if !watched {
                    until_in_long_sleep(thread);
                }
                room.commit();
                assert_eq!(number(&receiving.join().unwrap()), 7);
            });
        }
    }
}

alone! {
    /// Senders of a dead receiver that send nothing: the next one learns of their end all
    /// the same, and their messages are there.
    fn orphans_that_die_are_noticed() {
        let count = 4;
        let (pid, invitations, _peer) = receiving::<5>(Options::new().lanes(4), |_, _| {});
        let mut invitations = Vec::from(invitations);
        let next = invitations.pop().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let senders: Vec<i32> = (0..count)
            .zip(invitations)
            .map(|(at, invitation)| {
                sys::fork_pausing_after(|| {
                    let mut sender = Sender::attach(invitation).unwrap();
                    sender.send(&(at as u64).to_le_bytes()).unwrap();
                    say_word(&mut theirs.try_clone().unwrap());
                    std::mem::forget(sender);
                })
            })
            .collect();
        (0..count).for_each(|_| await_word(&mut ours));
        sys::kill_and_reap(pid);
        let mut receiver = Receiver::take_over(&next).unwrap();
        let mut got = drain(&mut receiver);
        got.sort_unstable();
        assert_eq!(got, (0..count as u64).collect::<Vec<_>>());
        // The senders are there.
        let waited = receiver.recv_timeout(Duration::from_millis(20));
        assert!(matches!(waited, Err(Error::TimedOut)), "{waited:?}");
        assert!(matches!(receiver.sender(), Err(Error::NoLane(4))));
        std::thread::scope(|scope| {
            let (told, thread) = std::sync::mpsc::channel();
            let receiver = &mut receiver;
            let waiting = scope.spawn(move || {
                told.send(sys::thread_id()).unwrap();
                receiver.recv()
            });
            until_in_long_sleep(thread.recv().unwrap());
            senders.into_iter().for_each(sys::kill_and_reap);
            assert!(matches!(waiting.join().unwrap(), Err(Error::Closed)));
        });
        // All lanes can be had again.
        let first = receiver.sender().unwrap();
        let _others: Vec<_> = (1..4).map(|_| first.try_clone().unwrap()).collect();
    }
}

alone! {
    /// The new receiver has no link to the sender, and watches its process.
    fn an_orphan_that_leaves_leaves_no_descriptor() {
        let (pid, [ours, next], _peer) = receiving(Options::new(), |_, _| {});
        let mut orphan = Sender::attach(ours).unwrap();
        orphan.send(b"x").unwrap();
        sys::kill_and_reap(pid);
        let mut receiver = Receiver::take_over(&next).unwrap();
        let descriptors = || test_support::Census::now().fds.len();
        let before = descriptors();
        assert_eq!(receiver.recv().unwrap(), b"x");
        // The process is looked at right before a sleep, and on a busy machine a short
        // time-out can pass before there is one. (The watchdog ends this.)
        while descriptors() == before {
            let waited = receiver.recv_timeout(Duration::from_millis(20));
            assert!(matches!(waited, Err(Error::TimedOut)), "{waited:?}");
        }
        assert_eq!(descriptors(), before + 1, "the process is looked at");
        drop(orphan);
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
        // The sender's own two descriptors are gone.
        assert_eq!(descriptors(), before - 2);
    }
}

alone! {
    /// The process has ended, and is not reaped; an unnoticed fork has its locks. So there
    /// is always something to be told of, and never anything new.
    fn an_orphan_that_is_neither_there_nor_gone_is_no_reason_to_look_all_the_time() {
        let (pid, [ours, next], _peer) = receiving(Options::new(), |_, _| {});
        let (mut from, mut to) = UnixStream::pair().unwrap();
        let orphan = sys::fork_pausing_after(|| {
            let mut sender = Sender::attach(ours).unwrap();
            sender.send(&1u64.to_le_bytes()).unwrap();
            let copy = sys::fork_unnoticed();
            to.write_all(&copy.to_le_bytes()).unwrap();
            std::mem::forget(sender);
        });
        let mut copy = [0; 4];
        from.read_exact(&mut copy).unwrap();
        sys::kill_and_reap(pid);
        sys::kill(orphan, libc::SIGKILL);
        test_support::eventually(|| test_support::state(orphan) == Some('Z'));
        let ready = || Receiver::take_over(&next).unwrap();
        let mut receiving = sys::steps::fork_ready(ready, |receiver| {
            assert_eq!(number(&receiver.recv().unwrap()), 1);
            let waited = receiver.recv_timeout(Duration::from_millis(100));
            assert!(matches!(waited, Err(Error::TimedOut)), "{waited:?}");
        });
        let mut stops = 0;
        while receiving.run_to_call() {
            stops += 1;
        }
        sys::kill(i32::from_ne_bytes(copy), libc::SIGKILL);
        sys::reap(orphan);
        assert!(receiving.until_ended());
        test_support::figure(&format!("{} system calls beside an orphan that cannot be told", stops / 2));
        assert!(stops / 2 < 60, "{stops}");
    }
}

alone! {
    fn of_several_one_takes_over() {
        for _ in 0..test_support::scaled(10, 300) {
            let (pid, [ours, next], _peer) = receiving(Options::new(), |_, _| {});
            let mut sender = Sender::attach(ours).unwrap();
            sender.send(&1u64.to_le_bytes()).unwrap();
            sys::kill_and_reap(pid);
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let contenders: Vec<i32> = (0..4)
                .map(|_| {
                    sys::fork_pausing_after(|| {
                        let taken = Receiver::take_over(&next);
                        let said: &[u8] = match &taken {
                            Ok(_) => b"y",
                            Err(Error::ReceiverAlive { .. }) => b"n",
                            Err(error) => panic!("{error}"),
                        };
                        (&theirs).write_all(said).unwrap();
                        std::mem::forget(taken);
                    })
                })
                .collect();
            let mut said = [0; 4];
            ours.read_exact(&mut said).unwrap();
            said.sort_unstable();
            assert_eq!(&said, b"nnny");
            contenders.into_iter().for_each(sys::kill_and_reap);
            let mut receiver = Receiver::take_over(&next).unwrap();
            assert_eq!(drain(&mut receiver), [1]);
        }
    }
}

/// Takes over in a fork, kills that after so many steps, and lets another take over.
/// Returns the number of steps there were.
fn take_over_killed_after(steps: u64, step: fn(&mut sys::steps::Traced) -> bool) -> u64 {
    let options = Options::new().lanes(4).first(4096).limit(1 << 16);
    let (pid, [ours, gone, next], mut peer) = receiving(options, |receiver, peer| {
        await_word(peer);
        for expected in 0..3u64 {
            assert_eq!(number(&receiver.recv().unwrap()), expected);
        }
        std::mem::forget(receiver.recv_view().unwrap());
        say_word(peer);
    });
    let mut sender = Sender::attach(ours).unwrap();
    for number in 0..40u64 {
        sender.send(&number.to_le_bytes()).unwrap();
    }
    say_word(&mut peer);
    await_word(&mut peer);
    // A sender that was there and is not any more.
    let (mut said, saying) = UnixStream::pair().unwrap();
    let left = sys::fork_pausing_after(|| {
        let mut sender = Sender::attach(gone).unwrap();
        sender.send(&1000u64.to_le_bytes()).unwrap();
        say_word(&mut saying.try_clone().unwrap());
        std::mem::forget(sender);
    });
    await_word(&mut said);
    sys::kill_and_reap(pid);
    assert!(matches!(sender.try_send(b""), Err(Error::ReceiverDead)));
    sys::kill_and_reap(left);
    let mut traced = sys::steps::fork_traced(
        || (),
        |()| {
            let mut receiver = Receiver::take_over(&next).unwrap();
            // A look at all lanes receives nothing.
            std::mem::forget(receiver.recv_view().unwrap());
            std::mem::forget(receiver);
        },
    );
    let done = (0..steps).take_while(|_| step(&mut traced)).count() as u64;
    drop(traced);
    let mut receiver = Receiver::take_over(&next).unwrap();
    sender.send(&40u64.to_le_bytes()).unwrap();
    let mut all = drain(&mut receiver);
    all.retain(|number| *number != 1000);
    assert_eq!(all, (3..=40).collect::<Vec<_>>(), "{steps}");
    // The lane of the dead sender is free again, and all others.
    test_support::eventually(|| {
        let waited = receiver.recv_timeout(Duration::from_millis(11));
        assert!(matches!(waited, Err(Error::TimedOut)), "{waited:?}");
        let two: Vec<_> = (0..3).map_while(|_| receiver.sender().ok()).collect();
        two.len() == 3
    });
    done
}

/// Kills the receiver everywhere, or in so many places.
fn take_over_killed(most: u64, step: fn(&mut sys::steps::Traced) -> bool) {
    // Facts that a process finds out once are known from here on.
    drop(Receiver::new().unwrap());
    let whole = take_over_killed_after(u64::MAX, step);
    let stride = whole.div_ceil(most);
    let mut steps = stride / 2;
    while take_over_killed_after(steps, step) == steps {
        steps += stride;
    }
    test_support::figure(&format!("{whole} steps, every {stride}"));
}

alone! {
    fn a_takeover_may_be_killed_anywhere() {
        take_over_killed(test_support::scaled(3, 4096), sys::steps::Traced::step);
    }
}

alone! {
    fn a_takeover_may_be_killed_before_and_after_any_call() {
        take_over_killed(test_support::scaled(60, 4096), sys::steps::Traced::run_to_call);
    }
}

/// Receives for ever, and reports the number of each message and of its sender once it was
/// received.
fn receive_all(mut receiver: Receiver, to: &UnixStream) -> ! {
    loop {
        match receiver.recv_view() {
            Ok(bytes) => (&*to).write_all(&bytes[..16]).unwrap(),
            // No sender has come yet.
            Err(Error::Closed) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

alone! {
    /// Receivers are killed one after the other, at any moment, while others send.
    fn a_line_of_receivers_loses_nothing() {
        const SENDERS: u64 = 3;
        let count = test_support::scaled(20, 2000);
        let options = Options::new().first(4096).limit(1 << 20);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (invited, inviting) = UnixStream::pair().unwrap();
        let mut pid = sys::fork_pausing_after(|| {
            let mut receiver = options.create().unwrap();
            for _ in 0..=SENDERS {
                receiver.invite().unwrap().send(&inviting).unwrap();
            }
            receive_all(receiver, &theirs);
        });
        let invitation = || Invitation::receive(&invited).unwrap();
        let next = invitation();
        let senders: Vec<i32> = (0..SENDERS)
            .map(|name| {
                let invitation = invitation();
                sys::fork_pausing_after(move || {
                    let mut sender = loop {
                        // Senders wait until there is a receiver.
                        let file = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().unwrap();
                        let [a, b] = invitation.files();
                        let copy = Invitation::from_parts([file(&a), file(&b)], &invitation.ticket());
                        match Sender::attach(copy.unwrap()) {
                            Ok(sender) => break sender,
                            Err(Error::ReceiverDead) => {}
                            Err(error) => panic!("{error}"),
                        }
                    };
                    let mut bytes = [0; 48];
                    bytes[..8].copy_from_slice(&name.to_le_bytes());
                    for number in 0..u64::MAX {
                        bytes[8..16].copy_from_slice(&number.to_le_bytes());
                        loop {
                            match sender.send(&bytes) {
                                Ok(()) => break,
                                Err(Error::ReceiverDead) => std::thread::yield_now(),
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                })
            })
            .collect();
        let mut from = &ours;
        let mut record = [0; 16];
        let mut next_of: BTreeMap<u64, u64> = BTreeMap::new();
        let mut again = 0u64;
        for round in 0..count {
            let mut lasts = BTreeMap::new();
            for _ in 0..50 + round * 37 % 500 {
                from.read_exact(&mut record).unwrap();
                let (name, this) = (number(&record), number(&record[8..]));
                let expected = next_of.entry(name).or_default();
                // A message that the last receiver has reported and was killed before it
                // had received it, once in its life.
                if this + 1 == *expected && !lasts.contains_key(&name) {
                    again += 1;
                } else {
                    assert_eq!(this, *expected, "of {name}");
                    *expected += 1;
                }
                lasts.insert(name, this);
            }
            sys::kill_and_reap(pid);
            // Reports from before.
            ours.set_nonblocking(true).unwrap();
            while from.read_exact(&mut record).is_ok() {
                let (name, this) = (number(&record), number(&record[8..]));
                let expected = next_of.entry(name).or_default();
                if this + 1 == *expected && !lasts.contains_key(&name) {
                    again += 1;
                } else {
                    assert_eq!(this, *expected, "of {name}");
                    *expected += 1;
                }
                lasts.insert(name, this);
            }
            ours.set_nonblocking(false).unwrap();
            pid = sys::fork_pausing_after(|| {
                receive_all(Receiver::take_over(&next).unwrap(), &theirs);
            });
        }
        test_support::figure(&format!("{count} receivers, {again} messages came again"));
        senders.into_iter().for_each(sys::kill_and_reap);
        sys::kill_and_reap(pid);
    }
}
