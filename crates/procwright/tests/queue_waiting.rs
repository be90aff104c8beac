//! A receiver in a wait set, beside processes and monitors.

mod common;

use std::os::fd::AsFd;
use std::time::Duration;
use test_support::alone;

use common::sys;
use procwright::Stdin;
use procwright::liveness::{Monitor, Token};
use procwright::queue::{Error, Options, Receiver, Sender};
use procwright::wait::{Event, Key, Outcome, WaitSet, Waitable, Want};

type Set<'a> = WaitSet<Box<dyn Waitable + 'a>>;

fn next(set: &mut Set<'_>) -> Key {
    let mut ended = set.wait(Want::First(1), None).unwrap().ended;
    ended.pop().unwrap().0
}

fn nothing(set: &mut Set<'_>) {
    let waited = set.wait(Want::Any, Duration::from_millis(1)).unwrap();
    assert!(waited.ended.is_empty());
    assert_eq!(waited.outcome, Outcome::TimedOut);
}

/// Whether the set's descriptor is readable, as an event loop sees it.
fn is_readable(set: &Set<'_>) -> bool {
    sys::readable(set.as_fd())
}

#[test]
fn beside_a_process_and_a_monitor() {
    let _watchdog = common::watchdog("beside_a_process_and_a_monitor");
    let mut child = common::child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap();
    let token = Token::new().unwrap();
    let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
    let mut receivers = [Receiver::new().unwrap(), Receiver::new().unwrap()];
    let mut senders = receivers.each_mut().map(|one| one.sender().unwrap());
    let stdin = child.stdin.take();
    let [one, two] = receivers.each_mut();
    let mut set = Set::new().unwrap();
    let process = set.add(Box::new(&child), Event::Exited).unwrap();
    let peer = set.add(Box::new(monitor), Event::Exited).unwrap();
    let one = set.add(Box::new(one), Event::Exited).unwrap();
    let two = set.add(Box::new(two), Event::Exited).unwrap();
    nothing(&mut set);
    assert!(!is_readable(&set));
    senders[1].send(b"two").unwrap();
    assert!(is_readable(&set));
    assert_eq!(next(&mut set), two);
    nothing(&mut set);
    drop(token);
    assert_eq!(next(&mut set), peer);
    senders[0].send(b"one").unwrap();
    drop(stdin);
    assert_eq!(next(&mut set).min(next(&mut set)), process.min(one));
    assert!(set.is_empty());
    drop(set);
    let received = receivers.map(|mut one| one.recv().unwrap());
    assert_eq!(received, [b"one", b"two"]);
    child.wait(None).unwrap();
}

#[test]
fn what_is_there_before_stays_there() {
    let mut receiver = Receiver::new().unwrap();
    let mut sender = receiver.sender().unwrap();
    // The message lies behind a jump into a larger block, which a look must not take.
    let long = vec![7; 100_000];
    for length in [0, 1, 100_000] {
        sender.send(&long[..length]).unwrap();
        for _ in 0..3 {
            let mut set = Set::new().unwrap();
            let key = set.add(Box::new(&mut receiver), Event::Exited).unwrap();
            assert!(is_readable(&set));
            assert_eq!(next(&mut set), key);
        }
        assert_eq!(receiver.recv().unwrap(), &long[..length]);
        let mut set = Set::new().unwrap();
        set.add(Box::new(&mut receiver), Event::Exited).unwrap();
        nothing(&mut set);
    }
}

#[test]
fn a_sender_that_comes_later_and_one_of_several_that_leaves() {
    let _watchdog = common::watchdog("a_sender_that_comes_later_and_one_of_several_that_leaves");
    let mut receiver = Receiver::new().unwrap();
    let first = receiver.sender().unwrap();
    let invitation = receiver.invite().unwrap();
    let mut set = WaitSet::new().unwrap();
    set.add(receiver, Event::Exited).unwrap();
    // The end of a sender rings, and there is nothing to receive.
    drop(first);
    let waited = set.wait(Want::Any, Duration::from_millis(1)).unwrap();
    assert_eq!(waited.outcome, Outcome::TimedOut);
    assert!(!sys::readable(set.as_fd()));
    let thread = std::thread::spawn(move || {
        Sender::attach(invitation).unwrap().send(b"late").unwrap();
    });
    let (_, mut receiver) = set.next(None).unwrap().unwrap();
    assert_eq!(receiver.recv().unwrap(), b"late");
    thread.join().unwrap();
    // The end of all messages is an event as well.
    let mut set = WaitSet::new().unwrap();
    set.add(receiver, Event::Exited).unwrap();
    let (_, mut receiver) = set.next(None).unwrap().unwrap();
    assert!(matches!(receiver.try_recv(), Err(Error::Closed)));
}

/// No message that comes through a set is slept through.
#[test]
fn a_loop_around_a_set() {
    let _watchdog = common::watchdog("a_loop_around_a_set");
    let count = common::scaled(3000, 10_000_000);
    let mut receiver = Receiver::new().unwrap();
    let invitation = receiver.invite().unwrap();
    let peer = sys::fork_pausing_after(move || {
        let mut sender = Sender::attach(invitation).unwrap();
        for number in 0..count {
            sender.send(&number.to_le_bytes()).unwrap();
            // A pause, so that the receiver sleeps again and again.
            if number % 64 == 0 {
                std::thread::yield_now();
            }
        }
    });
    let mut expected = 0_u64;
    while expected < count {
        let mut set = WaitSet::new().unwrap();
        set.add(&mut receiver, Event::Exited).unwrap();
        assert_eq!(set.wait(Want::Any, None).unwrap().ended.len(), 1);
        drop(set);
        while let Ok(message) = receiver.try_recv() {
            assert_eq!(message, expected.to_le_bytes());
            expected += 1;
        }
    }
    sys::kill(peer, libc::SIGKILL);
    sys::reap(peer);
}

#[test]
fn who_is_woken_has_received_nothing() {
    let _watchdog = common::watchdog("who_is_woken_has_received_nothing");
    let mut receiver = Receiver::new().unwrap();
    let mut sender = receiver.sender().unwrap();
    let waker = receiver.waker();
    assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
    let mut set = Set::new().unwrap();
    set.add(Box::new(&mut receiver), Event::Exited).unwrap();
    nothing(&mut set);
    assert!(!is_readable(&set));
    std::thread::scope(|scope| scope.spawn(|| waker.wake()).join().unwrap());
    assert!(is_readable(&set));
    nothing(&mut set);
    assert!(!is_readable(&set));
    drop(set);
    sender.send(b"x").unwrap();
    waker.wake();
    assert_eq!(receiver.recv().unwrap(), b"x");
    // The waker keeps nothing.
    drop(receiver);
    waker.wake();
    assert!(matches!(sender.send(b"x"), Err(Error::Closed)));
}

#[test]
fn one_that_is_shared_cannot_be_asked() {
    let receiver = Receiver::new().unwrap();
    let mut set = WaitSet::new().unwrap();
    let error = set.add(&receiver, Event::Exited).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    assert!(error.to_string().contains("&mut"), "{error}");
    assert!(set.is_empty());
}

alone! {
    fn not_in_a_fork() {
        let mut receiver = Receiver::new().unwrap();
        let mut set = WaitSet::new().unwrap();
        set.add(&mut receiver, Event::Exited).unwrap();
        let status = sys::in_fork(|| {
            let mut set = set;
            i32::from(set.wait(Want::Any, Duration::ZERO).is_ok())
        });
        assert_eq!(status, 0);
        let status = sys::in_fork(|| {
            let mut set = WaitSet::new().unwrap();
            i32::from(set.add(&mut receiver, Event::Exited).is_ok())
        });
        assert_eq!(status, 0);
    }
}

/// The ring's beginning has to be passed over, and is no message, before the next
/// message has room. A set that finds nothing else has to pass over it, or both sides
/// would wait.
#[test]
fn a_set_makes_room_for_who_waits() {
    let mut receiver = Options::new().first(4096).limit(4096).create().unwrap();
    let mut sender = receiver.sender().unwrap();
    sender.send(&[1; 3000]).unwrap();
    assert_eq!(receiver.recv().unwrap(), [1; 3000]);
    let mut set = Set::new().unwrap();
    set.add(Box::new(&mut receiver), Event::Exited).unwrap();
    let long = [2; 4024];
    assert!(matches!(sender.try_send(&long), Err(Error::Full)));
    assert!(is_readable(&set));
    nothing(&mut set);
    sender.try_send(&long).unwrap();
    assert_eq!(set.wait(Want::Any, None).unwrap().ended.len(), 1);
    drop(set);
    assert_eq!(receiver.recv().unwrap(), long);
}
