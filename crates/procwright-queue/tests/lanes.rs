//! Lanes that are left, and the senders that want them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_queue::{Error, Invitation, LaneState, Opening, Options, Sender};
use test_support::sys;

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
        sys::kill_and_reap(pid);
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
        sys::kill_and_reap(pid);
    }
}

/// A name in a directory of its own.
fn with_a_name(test: impl FnOnce()) {
    let directory = tempfile::tempdir().unwrap();
    let queues = directory.path().join("queues");
    // SAFETY: `alone!` runs this in a process with no other thread.
    unsafe { std::env::set_var("PROCWRIGHT_QUEUE_DIR", queues) };
    test();
}

alone! {
    /// The receiver does not look once.
    fn a_lane_that_was_left_empty_is_free_at_once() {
        with_a_name(|| {
            let mut receiver = Options::new().lanes(2).open("a").unwrap();
            for round in 0..500 {
                let one = Sender::open("a").unwrap_or_else(|error| panic!("{round}: {error}"));
                let other = one.try_clone().unwrap();
                drop((one, other));
            }
            // What comes over a lane that many have had is whole.
            let mut one = Sender::open("a").unwrap();
            let mut other = one.try_clone().unwrap();
            one.send(b"x").unwrap();
            other.send(b"y").unwrap();
            drop((one, other));
            let mut got = [receiver.recv().unwrap(), receiver.recv().unwrap()];
            got.sort();
            assert_eq!(got, [b"x", b"y"]);
        });
    }
}

alone! {
    /// The receiver knows the lane from the sender before, and never sees it free: the next
    /// one goes on where that one was.
    fn a_lane_goes_from_one_sender_to_the_next_between_two_looks() {
        let mut receiver = Options::new().lanes(2).first(4096).create().unwrap();
        let kept = receiver.sender().unwrap();
        for round in 0..300_usize {
            let mut sender = kept.try_clone().unwrap();
            // Some lay in the mailbox, some in the ring, some go round it.
            let message = vec![round as u8; 1 + round * 37 % 1500];
            sender.send(&message).unwrap();
            assert_eq!(receiver.recv().unwrap(), message, "{round}");
            drop(sender);
            for _ in 0..round % 3 {
                drop(kept.try_clone().unwrap());
            }
            if round % 5 == 0 {
                assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
            }
        }
    }
}

alone! {
    /// What is left in a lane is the receiver's to read: until then nobody else has it.
    fn a_lane_with_messages_is_not_free() {
        with_a_name(|| {
            let mut receiver = Options::new().lanes(2).open("a").unwrap();
            let mut one = Sender::open("a").unwrap();
            let mut other = one.try_clone().unwrap();
            one.send(b"x").unwrap();
            other.send(&[7; 100_000]).unwrap();
            drop((one, other));
            assert!(matches!(Sender::open("a"), Err(Error::NoLane(2))));
            let left = procwright_queue::stat("a").unwrap().taken;
            assert!(left.iter().all(|lane| lane.state == LaneState::Left));
            assert_eq!(left.len(), 2);
            let mut got = [receiver.recv().unwrap().len(), receiver.recv().unwrap().len()];
            got.sort_unstable();
            assert_eq!(got, [1, 100_000]);
            assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
            let one = Sender::open("a").unwrap();
            drop(one.try_clone().unwrap());
        });
    }
}

alone! {
    /// The receiver has the last message and does not look for more: whoever comes next
    /// takes the lane that was left, without it. What it sends is read behind.
    fn a_lane_that_was_left_and_is_read_is_had_without_the_receiver() {
        let mut receiver = Options::new().lanes(2).create().unwrap();
        let kept = receiver.sender().unwrap();
        for round in 0..200_u8 {
            let mut sender = kept.try_clone().unwrap();
            sender.send(&[round; 100]).unwrap();
            drop(sender);
            assert!(matches!(kept.try_clone(), Err(Error::NoLane(2))));
            assert_eq!(receiver.recv().unwrap(), [round; 100]);
        }
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
    }
}

alone! {
    /// A process that is killed has its lane until the receiver looks, whatever others do.
    fn a_lane_of_the_dead_comes_free_by_the_receiver() {
        let mut receiver = Options::new().lanes(1).create().unwrap();
        let mut invitation = Some(receiver.invite().unwrap());
        for round in 0..20 {
            let invited = invitation.take().unwrap();
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            let pid = sys::fork_pausing_after(|| {
                let mut sender = Sender::attach(invited).unwrap();
                if round % 2 == 0 {
                    drop(sender);
                } else {
                    sender.send(b"x").unwrap();
                    std::mem::forget(sender);
                }
                theirs.write_all(b".").unwrap();
            });
            ours.read_exact(&mut [0]).unwrap();
            sys::kill_and_reap(pid);
            invitation = Some(receiver.invite().unwrap());
            if round % 2 == 1 {
                assert_eq!(receiver.recv().unwrap(), b"x");
            }
            assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        }
        drop(Sender::attach(invitation.take().unwrap()).unwrap());
    }
}

/// Long enough for any machine: a test that waits so long has failed.
const LONG: Duration = Duration::from_secs(100);

fn no_lane_in_time(waited: Result<Sender, Error>) {
    let Err(Error::OpenTimedOut(reason)) = waited else {
        panic!("{waited:?}");
    };
    assert!(matches!(*reason, Error::NoLane(_)), "{reason:?}");
}

alone! {
    fn a_wait_for_a_lane_lasts_as_long_as_it_was_told() {
        with_a_name(|| {
            let mut receiver = Options::new().lanes(1).open("a").unwrap();
            let invitations = [receiver.invite().unwrap(), receiver.invite().unwrap()];
            let kept = Sender::open("a").unwrap();
            let time = Duration::from_millis(30);
            let [first, second] = invitations;
            for waited in [
                Box::new(|| Sender::open_within("a", time)) as Box<dyn FnOnce() -> _>,
                Box::new(|| Sender::attach_within(first, time)),
                Box::new(|| kept.try_clone_within(time)),
            ] {
                let begun = Instant::now();
                no_lane_in_time(waited());
                assert!(begun.elapsed() >= time);
            }
            no_lane_in_time(Sender::open_within("a", Duration::ZERO));
            drop(kept);
            drop(Sender::open_within("a", Duration::ZERO).unwrap());
            drop(Sender::attach_within(second, Duration::ZERO).unwrap());
        });
    }
}

alone! {
    /// By a sender that leaves it empty, and by the receiver that has read it; in this
    /// process and in others.
    fn whoever_frees_a_lane_wakes_who_waits_for_it() {
        with_a_name(|| {
            let mut receiver = Options::new().lanes(1).open("a").unwrap();
            for round in 0..test_support::scaled(6, 200) {
                let mut sender = Sender::open_within("a", LONG).unwrap();
                let (mut ours, mut theirs) = UnixStream::pair().unwrap();
                let pid = sys::fork_pausing_after(|| {
                    theirs.write_all(b".").unwrap();
                    // Nothing but the wake-up ends this.
                    drop(Sender::open_within("a", None).unwrap());
                    theirs.write_all(b"!").unwrap();
                });
                ours.read_exact(&mut [0]).unwrap();
                test_support::eventually(|| {
                    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall"));
                    let number = call.unwrap_or_default();
                    let number = number.split(' ').next().and_then(|call| call.parse().ok());
                    number.is_some_and(|call: i64| [libc::SYS_futex_waitv, libc::SYS_futex].contains(&call))
                });
                if round % 2 == 0 {
                    drop(sender);
                } else {
                    sender.send(b"x").unwrap();
                    drop(sender);
                    assert_eq!(receiver.recv().unwrap(), b"x");
                    assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
                }
                ours.read_exact(&mut [0]).unwrap();
                sys::kill_and_reap(pid);
                assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
            }
        });
    }
}

/// Many more threads than lanes, and a receiver that is slow: each message comes, and none
/// is told that there is no lane.
#[test]
fn as_many_as_want_come_to_a_lane_in_their_turn() {
    let mut receiver = Options::new().lanes(2).create().unwrap();
    let (threads, rounds) = (8, test_support::scaled(30, 3000) as usize);
    let kept = receiver.sender().unwrap();
    let start = Barrier::new(threads);
    let sent = |thread: usize| {
        (0..rounds)
            .filter(|round| !(thread + round).is_multiple_of(3))
            .count()
    };
    let got = std::thread::scope(|scope| {
        for thread in 0..threads {
            let (kept, start) = (Opening::beside(&kept).unwrap(), &start);
            scope.spawn(move || {
                let mut opening = kept;
                start.wait();
                for round in 0..rounds {
                    let sender = opening.wait(LONG, || true).unwrap();
                    let mut sender = sender.expect("never told to stop");
                    if !(thread + round).is_multiple_of(3) {
                        sender.send(&[thread as u8]).unwrap();
                    }
                }
            });
        }
        let mut got = vec![0; threads];
        for _ in 0..(0..threads).map(sent).sum() {
            let message = receiver.recv_timeout(LONG).unwrap();
            got[usize::from(message[0])] += 1;
        }
        got
    });
    assert_eq!(got, (0..threads).map(sent).collect::<Vec<_>>());
    drop(kept);
}

#[test]
fn a_wait_for_a_lane_stops_when_it_is_told_and_goes_on() {
    let mut receiver = Options::new().lanes(1).create().unwrap();
    let kept = receiver.sender().unwrap();
    let mut opening = Opening::beside(&kept).unwrap();
    for _ in 0..3 {
        assert!(opening.wait(LONG, || false).unwrap().is_none());
    }
    drop(kept);
    assert!(opening.wait(LONG, || false).unwrap().is_some());
}
