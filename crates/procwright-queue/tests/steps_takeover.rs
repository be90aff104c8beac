//! Receivers that are killed and stopped at every instruction of taking over.
//!
//! A receiver was killed with a message in its hands, and senders are there, are dead, and
//! have left. Another receiver takes over and is killed on the way: the next gets all the
//! same. Or it is stopped: senders are told that there is no receiver, or send; and it gets
//! all when it goes on.
#![cfg(target_arch = "x86_64")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::steps::{self, Fault, Point};
use test_support::sys::steps::{Others, Traced};
use test_support::sys::{self, SharedNumbers};

const LANES: u32 = 5;
/// Number of messages of the first sender that the dead receiver has received.
const RECEIVED: u64 = 3;
const SENT: u64 = 20;
/// Numbers of a sender that was killed, and of one that has left.
const DEAD: u64 = 1 << 32;
const LEFT: u64 = 2 << 32;
const OTHER: u64 = 3 << 32;

/// Two senders, a queue whose receiver is dead, and an invitation to take it over with.
struct Scene {
    first: Option<Sender>,
    sent: u64,
    other: Option<Sender>,
    others: u64,
    next: Option<Invitation>,
}

impl Scene {
    fn new() -> Scene {
        let options = Options::new().lanes(LANES).first(4096).limit(1 << 16);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let dead = sys::fork_pausing_after(|| {
            let mut receiver = options.create().unwrap();
            for _ in 0..5 {
                receiver.invite().unwrap().send(&theirs).unwrap();
            }
            (&theirs).read_exact(&mut [0]).unwrap();
            for number in 0..RECEIVED {
                assert_eq!(receiver.recv().unwrap(), number.to_le_bytes());
            }
            std::mem::forget(receiver.recv_view().unwrap());
            (&theirs).write_all(b".").unwrap();
            std::mem::forget(receiver);
        });
        let invitations = [(); 5].map(|()| Invitation::receive(&ours).unwrap());
        let [first, killed, left, other, next] = invitations;
        let mut first = Sender::attach(first).unwrap();
        for number in 0..SENT {
            first.send(&number.to_le_bytes()).unwrap();
        }
        (&ours).write_all(b".").unwrap();
        (&ours).read_exact(&mut [0]).unwrap();
        let pid = sys::fork_that(|| {
            let mut sender = Sender::attach(killed).unwrap();
            sender.send(&DEAD.to_le_bytes()).unwrap();
            sys::kill_ourselves();
        });
        sys::reap(pid);
        let mut left = Sender::attach(left).unwrap();
        left.send(&LEFT.to_le_bytes()).unwrap();
        drop(left);
        let scene = Scene {
            first: Some(first),
            sent: SENT,
            other: Some(Sender::attach(other).unwrap()),
            others: 0,
            next: Some(next),
        };
        sys::kill_and_reap(dead);
        scene
    }

    /// Sends where there is a receiver, or none, or one that was stopped while it wrote its
    /// page, for which no sender waits.
    fn go_on(&mut self) {
        let or_dead = |sent: Result<(), Error>| match sent {
            Ok(()) => 1,
            Err(Error::ReceiverDead) => 0,
            Err(error) => panic!("{error}"),
        };
        let send = |sender: &mut Option<Sender>, number: u64| {
            or_dead(sender.as_mut().unwrap().try_send(&number.to_le_bytes()))
        };
        self.sent += send(&mut self.first, self.sent);
        self.others += send(&mut self.other, OTHER + self.others);
    }

    /// Checks that these, in this order, are all messages that were not received.
    fn check(&self, all: &[u64], whence: &str) {
        let of = |from: u64| {
            let its = all
                .iter()
                .copied()
                .filter(|number| number >> 32 == from >> 32);
            its.collect::<Vec<_>>()
        };
        assert_eq!(of(0), (RECEIVED..self.sent).collect::<Vec<_>>(), "{whence}");
        assert_eq!(
            of(OTHER),
            (OTHER..OTHER + self.others).collect::<Vec<_>>(),
            "{whence}"
        );
        assert_eq!([of(DEAD), of(LEFT)], [vec![DEAD], vec![LEFT]], "{whence}");
    }
}

/// Writes down a message in two halves, behind their count.
fn write_down(log: &SharedNumbers, bytes: &[u8]) {
    let count = log.at(0).load(Ordering::SeqCst) as usize;
    for half in 0..2 {
        let number = u32::from_le_bytes(bytes[4 * half..][..4].try_into().unwrap());
        log.at(1 + 2 * count + half).store(number, Ordering::SeqCst);
    }
    log.at(0).store(count as u32 + 1, Ordering::SeqCst);
}

fn written(log: &SharedNumbers) -> Vec<u64> {
    let half = |at: usize| u64::from(log.at(at).load(Ordering::SeqCst));
    let count = half(0) as usize;
    (0..count)
        .map(|i| half(1 + 2 * i) | half(2 + 2 * i) << 32)
        .collect()
}

/// Receives all that comes until no sender is left.
fn drain(receiver: &mut Receiver, mut each: impl FnMut(&[u8])) {
    loop {
        match receiver.recv_view().as_deref() {
            Ok(bytes) => each(bytes),
            Err(Error::Closed) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

fn act(fault: Fault, point: &mut Point<'_>, log: &'static SharedNumbers) -> bool {
    log.at(0).store(0, Ordering::SeqCst);
    let mut scene = Scene::new();
    let next = scene.next.as_ref().unwrap();
    let mut traced = Traced::start(
        || None,
        |receiver| {
            // A look at all lanes receives nothing.
            let mut new = Receiver::take_over(next).unwrap();
            let view = new.recv_view().unwrap();
            write_down(log, &view);
            std::mem::forget(view);
            *receiver = Some(new);
        },
        |receiver: Option<Receiver>| {
            drain(&mut receiver.unwrap(), |bytes| write_down(log, bytes));
        },
    );
    traced.until_ready();
    let mut others = Others {
        is_time: &|| false,
        act: &mut || {},
    };
    let got_there = point.reach(&mut traced, &mut others);
    scene.go_on();
    let whence = format!("{fault:?} {}", point.name());
    if fault == Fault::Kill {
        traced.kill();
        let mut receiver = Receiver::take_over(scene.next.as_ref().unwrap()).unwrap();
        let before = scene.sent;
        scene.go_on();
        assert!(scene.sent > before, "{whence}");
        let mut all = Vec::new();
        while all.len() < (scene.sent - RECEIVED + scene.others + 2) as usize {
            let bytes = receiver.recv().unwrap();
            all.push(u64::from_le_bytes(bytes.try_into().unwrap()));
        }
        scene.check(&all, &whence);
        // The lanes of those that are gone are free again.
        let mut more = Vec::new();
        test_support::eventually(|| {
            let _ = receiver.recv_timeout(std::time::Duration::ZERO);
            more.extend(receiver.sender());
            more.len() + 2 == LANES as usize
        });
        return got_there;
    }
    traced.leave_stopped(false);
    scene.go_on();
    sys::kill(traced.pid, libc::SIGCONT);
    test_support::eventually(|| {
        let before = scene.sent;
        scene.go_on();
        scene.sent > before
    });
    (scene.first, scene.other, scene.next) = (None, None, None);
    assert!(traced.until_ended(), "{whence}");
    scene.check(&written(log), &whence);
    got_there
}

alone! {
    fn take_over() {
        let log: &'static SharedNumbers = Box::leak(Box::new(SharedNumbers::new(4096)));
        // Facts that a process finds out once are known from here on; also that there is
        // one processor.
        sys::have_one_processor();
        drop(Receiver::new().unwrap());
        steps::everywhere("take_over", |fault, point| act(fault, point, log));
    }
}
