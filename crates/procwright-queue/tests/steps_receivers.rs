//! Receivers that are killed and stopped at every instruction.
//!
//! As in `steps.rs`, with the sides changed: whatever the receiver does, and wherever it
//! stops, senders send, come and leave; when it goes on, it gets all, in order and once;
//! when it is dead they are told; and the receiver that takes over gets all that the dead
//! one has not received, and again no more than what that had in its hands.
#![cfg(target_arch = "x86_64")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::steps::{self, Fault, Point};
use test_support::sys::steps::{Others, Traced};
use test_support::sys::{self, SharedNumbers};

/// When the senders act while the receiver sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kicked {
    AtOnce,
    /// The senders act when the receiver sleeps on its descriptor, not before.
    Late,
    Never,
}

/// Acts of a receiver.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    options: Options,
    /// Acts of the senders before the receiver makes ready.
    before: fn(&mut Senders),
    ready: fn(&mut Victim),
    /// Acts of the senders when the receiver is ready, and has not begun.
    then: fn(&mut Senders),
    work: fn(&mut Victim),
    /// True if the first sender fills its lane meanwhile.
    fills: bool,
    /// True if a sender waits for room meanwhile.
    is_waited_for: bool,
    kicked: Kicked,
}

/// The process that is killed.
struct Victim {
    receiver: Option<Receiver>,
    log: &'static SharedNumbers,
}

// Places in a log: how many messages were handed out; how many of them were received for
// sure; whether one is being received that is not written down yet; and, from there on, the
// sender and number of each.
const COUNT: usize = 0;
const RECEIVED: usize = 1;
const UNSAID: usize = 2;
const FIRST: usize = 3;
const LENGTH: usize = 4096;

fn write_down(log: &SharedNumbers, message: &[u8]) {
    let number = u32::from_le_bytes(message[..4].try_into().unwrap());
    let count = log.at(COUNT).load(Ordering::SeqCst);
    log.at(FIRST + count as usize)
        .store(number, Ordering::SeqCst);
    log.at(COUNT).store(count + 1, Ordering::SeqCst);
}

impl Victim {
    fn receiver(&mut self) -> &mut Receiver {
        self.receiver.as_mut().unwrap()
    }

    fn set(&self, what: usize, value: u32) {
        self.log.at(what).store(value, Ordering::SeqCst);
    }

    /// Writes down that all that was handed out is received.
    fn confirm(&self) {
        self.set(RECEIVED, self.log.at(COUNT).load(Ordering::SeqCst));
    }

    fn recv(&mut self) {
        self.set(UNSAID, 1);
        let message = self.receiver().recv().unwrap();
        write_down(self.log, &message);
        self.confirm();
        self.set(UNSAID, 0);
    }

    /// Receives a message where it is, without a copy.
    fn view(&mut self) {
        let log = self.log;
        let view = self.receiver().recv_view().unwrap();
        write_down(log, &view);
        drop(view);
        self.confirm();
    }

    /// Receives all that is there. Returns whether there will be more.
    fn try_all(&mut self) -> bool {
        let log = self.log;
        loop {
            self.confirm();
            match self.receiver().try_recv_view() {
                Ok(view) => write_down(log, &view),
                Err(Error::Empty) => return true,
                Err(Error::Closed) => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn take_all(&mut self) {
        self.try_all();
    }

    fn watch(&mut self) {
        let _ = self.receiver().readiness_fd().unwrap();
        self.take_all();
    }

    /// Receives to the end, if it has not closed.
    fn rest(mut self) {
        if self.receiver.is_some() {
            while self.try_all() {
                match self.receiver().recv() {
                    Ok(message) => write_down(self.log, &message),
                    Err(Error::Closed) => return,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

/// A sender, and how many messages it has sent.
struct Talker {
    sender: Option<Sender>,
    number: usize,
    sent: usize,
}

impl Talker {
    fn send(&mut self, length: usize) -> Result<(), Error> {
        let message = message(self.number, self.sent, length);
        self.sender.as_mut().unwrap().try_send(&message)?;
        self.sent += 1;
        Ok(())
    }
}

fn message(talker: usize, number: usize, length: usize) -> Vec<u8> {
    let mut bytes = ((talker << 16 | number) as u32).to_le_bytes().to_vec();
    bytes.resize(length.max(4), 0x55);
    bytes
}

/// The other side.
struct Senders {
    invitations: Vec<Invitation>,
    talkers: Vec<Talker>,
}

impl Senders {
    fn attach(&mut self) -> Result<&mut Talker, Error> {
        let invitation = self.invitations.pop().unwrap();
        let number = self.talkers.len();
        self.talkers.push(Talker {
            sender: Some(Sender::attach(invitation)?),
            number,
            sent: 0,
        });
        Ok(self.talkers.last_mut().unwrap())
    }

    fn first(&mut self) -> &mut Talker {
        &mut self.talkers[0]
    }

    fn send(&mut self, lengths: &[usize]) {
        for length in lengths {
            self.first().send(*length).unwrap();
        }
    }

    /// Sends while the receiver does nothing, which is no reason to wait.
    fn go_on(&mut self, fills: bool) -> Result<(), Error> {
        // The sender fills all that it may write to, at once.
        while fills && self.first().send(60_000).is_ok() {}
        for _ in 0..3 {
            self.talkers[1].send(10)?;
        }
        let passing = self.attach()?;
        passing.send(10)?;
        passing.sender = None;
        Ok(())
    }
}

/// Lets a receiver act up to a point. Returns whether it got there.
fn act(row: Row, fault: Fault, point: &mut Point<'_>, log: &'static SharedNumbers) -> bool {
    for what in [COUNT, RECEIVED, UNSAID] {
        log.at(what).store(0, Ordering::SeqCst);
    }
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut traced = Traced::start(
        || {
            let mut receiver = row.options.create().unwrap();
            for _ in 0..INVITED {
                receiver.invite().unwrap().send(&theirs).unwrap();
            }
            let receiver = Some(receiver);
            let mut victim = Victim { receiver, log };
            (&theirs).read_exact(&mut [0]).unwrap();
            (row.ready)(&mut victim);
            victim
        },
        row.work,
        Victim::rest,
    );
    let mut senders = Senders {
        invitations: (0..INVITED)
            .map(|_| Invitation::receive(&ours).unwrap())
            .collect(),
        talkers: Vec::new(),
    };
    for _ in 0..2 {
        senders.attach().unwrap();
    }
    (row.before)(&mut senders);
    ours.write_all(b".").unwrap();
    traced.until_ready();
    assert!(!traced.has_ended, "{}: it could not make ready", row.name);
    (row.then)(&mut senders);
    let waits = row.is_waited_for.then(|| wait_for_room(senders.first()));

    let pid = traced.pid;
    let mut others = Others {
        is_time: &|| match row.kicked {
            Kicked::AtOnce => true,
            Kicked::Late => sleeps_on_descriptors(pid),
            Kicked::Never => false,
        },
        act: &mut || senders.talkers[1].send(10).unwrap(),
    };
    let got_there = point.reach(&mut traced, &mut others);
    let go_on = |senders: &mut Senders| match senders.go_on(row.fills) {
        Ok(()) => {}
        Err(Error::Closed) if row.name == "close" => {}
        Err(error) => panic!("{} {}: {error}", row.name, point.name()),
    };
    go_on(&mut senders);
    if fault == Fault::Stop {
        traced.leave_stopped(matches!(point, Point::Asleep) && got_there);
        go_on(&mut senders);
        sys::kill(pid, libc::SIGCONT);
        if let Some(waits) = waits {
            match waits.join().unwrap() {
                Ok(sender) => {
                    senders.first().sender = Some(sender);
                    senders.first().sent += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        senders.invitations.clear();
        let sent: Vec<usize> = senders.talkers.iter().map(|talker| talker.sent).collect();
        drop(senders);
        assert!(traced.until_ended(), "{} {}", row.name, point.name());
        let received = received(log, COUNT, sent.len());
        let all = received == sent || row.name == "close";
        assert!(
            all,
            "{} {}: {received:?} of {sent:?}",
            row.name,
            point.name()
        );
        return got_there;
    }
    traced.kill();
    // Each sender is told at once and for ever.
    let is_told = |error: &Error| match error {
        Error::ReceiverDead => true,
        Error::Closed => row.name == "close",
        _ => false,
    };
    let told = |result: Result<(), Error>| match result {
        Err(error) if is_told(&error) => {}
        other => panic!("{} {}: {other:?}", row.name, point.name()),
    };
    told(senders.talkers[1].send(10));
    if let Some(waits) = waits {
        // The sender may have got its room before.
        let sent = waits.join().unwrap();
        told(sent.and_then(|mut sender| {
            senders.talkers[0].sent += 1;
            sender.send(b"more")
        }));
    }
    let late = senders.invitations.pop().unwrap();
    told(Sender::attach(late).map(drop));
    told(senders.talkers[1].send(10));
    if row.name != "close" {
        take_over(senders, log, &format!("{} {}", row.name, point.name()));
    }
    got_there
}

/// Lets another receiver take over from the dead one.
fn take_over(mut senders: Senders, log: &SharedNumbers, whence: &str) {
    let next = senders.invitations.pop().unwrap();
    let mut receiver = Receiver::take_over(&next).unwrap();
    // Old senders go on in their lanes, and new ones find one.
    senders.talkers[1].send(10).unwrap();
    senders.attach().unwrap().send(10).unwrap();
    let sent: Vec<usize> = senders.talkers.iter().map(|talker| talker.sent).collect();
    drop((next, senders));
    let mut rest = vec![Vec::new(); sent.len()];
    loop {
        match receiver.recv_view().as_deref() {
            Ok(message) => {
                let number = u32::from_le_bytes(message[..4].try_into().unwrap()) as usize;
                rest[number >> 16].push(number & 0xffff);
            }
            Err(Error::Closed) => break,
            Err(error) => panic!("{whence}: {error}"),
        }
    }
    let [handed, sure] = [COUNT, RECEIVED].map(|what| received(log, what, sent.len()));
    let mut unsaid = log.at(UNSAID).load(Ordering::SeqCst) as usize;
    for talker in 0..sent.len() {
        let first = rest[talker].first().copied().unwrap_or(sent[talker]);
        assert_eq!(
            rest[talker],
            (first..sent[talker]).collect::<Vec<_>>(),
            "{whence}"
        );
        assert!(first >= sure[talker], "{whence}: {first} was received");
        let lost = first.saturating_sub(handed[talker]);
        assert!(lost <= unsaid, "{whence}: {lost} are lost");
        unsaid -= lost;
    }
    let mut all = vec![receiver.sender().unwrap()];
    while all.len() < 8 {
        let another = all[0].try_clone().unwrap();
        all.push(another);
    }
}

/// Invitations for the senders of a row, for those that come and leave, and for one that is
/// late.
const INVITED: usize = 8;

/// Numbers of messages of each sender that have come, or were received for sure; checks
/// that they came in order, and once.
fn received(log: &SharedNumbers, what: usize, talkers: usize) -> Vec<usize> {
    let mut next = vec![0; talkers];
    for at in 0..log.at(what).load(Ordering::SeqCst) as usize {
        let number = log.at(FIRST + at).load(Ordering::SeqCst) as usize;
        let (talker, number) = (number >> 16, number & 0xffff);
        assert_eq!(number, next[talker], "of sender {talker}");
        next[talker] += 1;
    }
    next
}

/// A thread that sends one more message, when there is room.
fn wait_for_room(talker: &mut Talker) -> std::thread::JoinHandle<Result<Sender, Error>> {
    while talker.send(100).is_ok() {}
    let mut sender = talker.sender.take().unwrap();
    let message = message(talker.number, talker.sent, 100);
    let (told, number) = std::sync::mpsc::channel();
    let waits = std::thread::spawn(move || {
        told.send(sys::thread_id()).unwrap();
        sender.send(&message).map(|()| sender)
    });
    let thread = number.recv().unwrap();
    let asleep = format!("{} ", libc::SYS_futex_waitv);
    test_support::eventually(|| {
        let call = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
        call.is_ok_and(|call| call.starts_with(&asleep))
    });
    waits
}

fn sleeps_on_descriptors(pid: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let number = call
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    number.is_some_and(sys::is_waiting_call)
}

macro_rules! rows {
    ($($test:ident: $row:expr;)*) => {
        $(alone! {
            fn $test() {
                let mut row: Row = $row;
                row.name = stringify!($test);
                let log: &'static SharedNumbers = Box::leak(Box::new(SharedNumbers::new(LENGTH)));
                steps::everywhere(row.name, |fault, point| act(row, fault, point, log));
            }
        })*
    };
}

const SMALL: Options = Options::new().lanes(8).first(4096).limit(1 << 16);
const FIXED: Options = Options::new().lanes(8).fixed(4096);
const LARGE: Options = Options::new().lanes(8).first(1 << 17).limit(4 << 20);

const PLAIN: Row = Row {
    name: "",
    options: SMALL,
    before: |senders| senders.send(&[10, 20]),
    ready: Victim::recv,
    then: |_| {},
    work: Victim::recv,
    fills: false,
    is_waited_for: false,
    kicked: Kicked::AtOnce,
};

rows! {
    receive: PLAIN;
    receive_a_view: Row { work: Victim::view, ..PLAIN };
    // The sender is told of an eighth of a block, though there is more.
    release_in_the_middle: Row {
        before: |senders| senders.send(&[10, 600, 10]),
        work: Victim::view,
        ..PLAIN
    };
    receive_many: Row {
        before: |senders| senders.send(&[10, 20, 30, 40]),
        work: |victim| {
            let log = victim.log;
            let batch = victim.receiver().recv_many(3).unwrap();
            batch.iter().for_each(|message| write_down(log, message));
            drop(batch);
            victim.confirm();
        },
        ..PLAIN
    };
    receive_of_two: Row {
        before: |senders| {
            senders.send(&[10, 20]);
            senders.talkers[1].send(10).unwrap();
        },
        work: |victim| (0..2).for_each(|_| victim.view()),
        ..PLAIN
    };
    follow_a_jump: Row {
        before: |senders| senders.send(&[4000, 300]),
        work: Victim::view,
        ..PLAIN
    };
    // The sender goes back to a small block, and the large one's memory is given back.
    give_back: Row {
        options: LARGE.keep(256 << 10),
        before: |senders| senders.send(&[130_000, 260_000, 300]),
        ready: Victim::take_all,
        then: |senders| senders.send(&[300]),
        work: Victim::view,
        ..PLAIN
    };
    // The memory of what was read in a block that goes on is given back: before the sender
    // may write there again.
    give_back_in_place: Row {
        options: LARGE.keep(1 << 17),
        before: |senders| senders.send(&[140_000, 60_000]),
        ready: |_| {},
        work: Victim::view,
        fills: true,
        ..PLAIN
    };
    sleep_and_be_woken: Row {
        before: |senders| senders.send(&[10]),
        ..PLAIN
    };
    sleep_long_and_be_woken: Row {
        before: |senders| senders.send(&[10]),
        kicked: Kicked::Late,
        ..PLAIN
    };
    sleep_until_the_time_is_up: Row {
        before: |senders| senders.send(&[10]),
        work: |victim| {
            // The receiver sleeps on its word, then on its descriptor.
            let time = std::time::Duration::from_millis(20);
            victim.set(UNSAID, 1);
            match victim.receiver().recv_timeout(time) {
                Ok(message) => write_down(victim.log, &message),
                Err(Error::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
        },
        kicked: Kicked::Never,
        ..PLAIN
    };
    serve_an_event_loop: Row {
        ready: Victim::watch,
        then: |senders| senders.send(&[10]),
        work: Victim::take_all,
        ..PLAIN
    };
    wake_who_waits_for_room: Row {
        options: FIXED,
        before: |senders| senders.send(&[2000]),
        ready: |_| {},
        work: Victim::view,
        is_waited_for: true,
        ..PLAIN
    };
    greet: Row {
        then: |senders| senders.attach().unwrap().send(10).unwrap(),
        work: |victim| (0..2).for_each(|_| victim.view()),
        ..PLAIN
    };
    take_a_lane_back: Row {
        then: |senders| senders.first().sender = None,
        work: Victim::take_all,
        ..PLAIN
    };
    take_the_lane_of_a_dead_one_back: Row {
        before: |senders| {
            senders.send(&[10]);
            let invitation = senders.invitations.pop().unwrap();
            let number = senders.talkers.len();
            let pid = sys::fork_that(|| {
                let mut sender = Sender::attach(invitation).unwrap();
                sender.send(&message(number, 0, 10)).unwrap();
                sys::kill_ourselves();
            });
            sys::reap(pid);
            senders.talkers.push(Talker { sender: None, number, sent: 1 });
        },
        work: Victim::watch,
        ..PLAIN
    };
    invite: Row {
        work: |victim| drop(victim.receiver().invite().unwrap()),
        ..PLAIN
    };
    close: Row {
        work: |victim| victim.receiver = None,
        ..PLAIN
    };
}
