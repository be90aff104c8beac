//! Senders that are killed and stopped at every instruction.
//!
//! Each row is what a sender does. It is traced once, then done anew for each of its
//! instructions, up to that one, and killed or stopped there. (In the usual run for some of
//! them, under `STRESS=1` for each.) Then the rest goes on, exactly what it has sent
//! arrives, and its lane is good for the next sender.
#![cfg(target_arch = "x86_64")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::steps::{self, Fault, Point};
use test_support::sys;
use test_support::sys::steps::{Others, Traced};

/// How the receiver waits while a sender is about to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// The receiver is awake, and looks later.
    Not,
    /// The receiver is in an event loop, on its descriptor.
    OnDescriptor,
    /// The receiver is in `recv`, first on a word and then on its descriptor.
    Asleep,
}

/// Acts of a sender.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    options: Options,
    /// Lengths of all of its messages.
    lengths: &'static [usize],
    waits: Waits,
    ready: fn(&mut Victim),
    work: fn(&mut Victim),
}

impl Row {
    fn message(&self, number: usize) -> Vec<u8> {
        let mut bytes = vec![number as u8; self.lengths[number]];
        bytes.push(!(number as u8));
        bytes
    }
}

/// The process that is killed.
struct Victim {
    invitation: Option<Invitation>,
    sender: Option<Sender>,
    second: Option<Sender>,
    messages: Vec<Vec<u8>>,
    /// Numbers of messages that it has begun to send, and has sent.
    begun: &'static AtomicU64,
    sent: &'static AtomicU64,
}

impl Victim {
    fn attach(&mut self) {
        // A process that is killed and not reaped yet may have the lane.
        let invitation = self.invitation.take().expect("an invitation");
        self.sender = Some(Sender::attach(invitation).expect("a lane"));
    }

    /// Sends the next `count` messages.
    fn tell(&mut self, count: usize, how: impl FnOnce(&mut Sender, &[Vec<u8>])) {
        let from = self.begun.load(Ordering::SeqCst) as usize;
        let until = (from + count) as u64;
        self.begun.store(until, Ordering::SeqCst);
        let sender = self.sender.as_mut().expect("it has attached");
        how(sender, &self.messages[from..from + count]);
        self.sent.store(until, Ordering::SeqCst);
    }

    fn send(&mut self) {
        self.tell(1, |sender, messages| sender.send(&messages[0]).unwrap());
    }

    fn send_many(&mut self, count: usize) {
        self.tell(count, |sender, messages| {
            let sent = sender.send_many(messages.iter().map(Vec::as_slice));
            assert_eq!(sent.unwrap(), messages.len());
        });
    }

    fn reserve(&mut self) {
        self.tell(1, |sender, messages| {
            let mut room = sender.reserve(messages[0].len()).unwrap();
            room.copy_from_slice(&messages[0]);
            room.commit();
        });
    }
}

/// The receiver, and the messages that have come from the victim.
struct Scene {
    row: Row,
    receiver: Receiver,
    got: Vec<Vec<u8>>,
}

impl Scene {
    fn keep(&mut self, bytes: Vec<u8>, until: &[u8]) -> bool {
        let is_last = bytes == until;
        if !is_last {
            assert_eq!(bytes, self.row.message(self.got.len()));
            self.got.push(bytes);
        }
        is_last
    }

    /// Receives all that is there.
    fn look(&mut self) {
        loop {
            match self.receiver.try_recv() {
                Ok(bytes) => drop(self.keep(bytes, b"")),
                Err(Error::Empty | Error::Closed) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Receives until this message comes, in the way in which the receiver waits.
    fn until(&mut self, last: &[u8]) {
        loop {
            let bytes = match self.row.waits {
                Waits::OnDescriptor => self.by_descriptor(),
                _ => self.receiver.recv().unwrap(),
            };
            if self.keep(bytes, last) {
                return;
            }
        }
    }

    fn by_descriptor(&mut self) -> Vec<u8> {
        let ready = self.receiver.readiness_fd().unwrap();
        let ready = ready.try_clone_to_owned().unwrap();
        loop {
            match self.receiver.try_recv() {
                Ok(bytes) => return bytes,
                Err(Error::Empty) => {
                    let fd = std::os::fd::AsFd::as_fd(&ready);
                    test_support::eventually(|| sys::readable(fd));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits until all lanes of the queue but `others` can be had again, and serve.
    fn lanes_come_back(&mut self, others: usize) {
        // From here on each look attends to the senders that are gone.
        let _ = self.receiver.readiness_fd().unwrap();
        let mut next = Vec::new();
        while next.len() + others < LANES as usize {
            match self.receiver.sender() {
                Ok(sender) => next.push(sender),
                Err(Error::NoLane(_)) => self.look(),
                Err(error) => panic!("{error}"),
            }
        }
        for sender in &mut next {
            sender.send(b"again").unwrap();
            let bytes = loop {
                match self.receiver.try_recv() {
                    Ok(bytes) => break bytes,
                    Err(Error::Empty) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            assert_eq!(bytes, b"again");
        }
    }
}

/// Lanes of the other sender, two of the victim, and of one that comes meanwhile.
const LANES: u32 = 4;

/// Lets a sender act up to a point. Returns whether it got there.
fn act(row: Row, fault: Fault, point: &mut Point<'_>) -> bool {
    let (begun, sent) = (numbers(0), numbers(1));
    begun.store(0, Ordering::SeqCst);
    sent.store(0, Ordering::SeqCst);
    let mut scene = Scene {
        row,
        receiver: row.options.lanes(LANES).create().unwrap(),
        got: Vec::new(),
    };
    let mut other = scene.receiver.sender().unwrap();
    let invitation = scene.receiver.invite().unwrap();
    let mut traced = Traced::start(
        move || {
            let mut victim = Victim {
                invitation: Some(invitation),
                sender: None,
                second: None,
                messages: (0..row.lengths.len()).map(|n| row.message(n)).collect(),
                begun,
                sent,
            };
            (row.ready)(&mut victim);
            victim
        },
        row.work,
        // The end of the row is left as it is.
        std::mem::forget,
    );
    traced.until_ready();
    assert!(!traced.has_ended, "{}: it could not make ready", row.name);
    let mut got_there = true;
    let mut to_the_point = |traced: &mut Traced, others: &mut dyn FnMut()| {
        let is_time = &|| true;
        got_there = point.reach(
            traced,
            &mut Others {
                is_time,
                act: others,
            },
        );
    };
    match row.waits {
        Waits::Asleep => {
            scene.look();
            std::thread::scope(|scope| {
                let (told, number) = std::sync::mpsc::channel();
                let scene = &mut scene;
                scope.spawn(move || {
                    told.send(sys::thread_id()).unwrap();
                    scene.until(b"other");
                });
                let thread = number.recv().unwrap();
                test_support::eventually(|| test_support::state(thread) == Some('S'));
                to_the_point(&mut traced, &mut || {});
                other.send(b"other").unwrap();
            });
        }
        waits => {
            if waits == Waits::OnDescriptor {
                let _ = scene.receiver.readiness_fd().unwrap();
                scene.look();
            }
            to_the_point(&mut traced, &mut || scene.look());
            other.send(b"other").unwrap();
            scene.until(b"other");
        }
    }
    let mut all = row.lengths.len();
    match fault {
        Fault::Kill => {
            let counts = [sent, begun].map(|n| n.load(Ordering::SeqCst) as usize);
            traced.kill();
            // All that was sent comes, and no wake-up is needed for it.
            while scene.got.len() < counts[0] {
                match scene.receiver.recv_timeout(Duration::ZERO) {
                    Ok(bytes) => drop(scene.keep(bytes, b"")),
                    Err(Error::TimedOut) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            scene.look();
            // All that is shown at once arrives or not: a message is there, or is not.
            assert!(
                counts.contains(&scene.got.len()),
                "{counts:?} {}",
                point.name()
            );
            all = scene.got.len();
        }
        Fault::Stop => {
            traced.leave_stopped(matches!(point, Point::Asleep) && got_there);
            // Other senders come and go meanwhile.
            for _ in 0..2 {
                let mut third = scene.receiver.sender().unwrap();
                third.send(b"third").unwrap();
                scene.until(b"third");
                drop(third);
                let _ = scene.receiver.readiness_fd().unwrap();
                scene.look();
            }
            sys::kill(traced.pid, libc::SIGCONT);
            while !traced.has_ended_now() {
                scene.look();
            }
            assert!(traced.until_ended(), "{} {}", row.name, point.name());
        }
    }
    scene.lanes_come_back(1);
    scene.look();
    assert_eq!(
        scene.got.len(),
        all,
        "{} {fault:?} {}",
        row.name,
        point.name()
    );
    drop(other);
    got_there
}

fn numbers(index: usize) -> &'static AtomicU64 {
    static NUMBERS: procwright_os::fork::OnceBox<[&AtomicU64; 2]> =
        procwright_os::fork::OnceBox::new();
    NUMBERS.get_or_init(|| [sys::steps::shared_number(), sys::steps::shared_number()])[index]
}

macro_rules! rows {
    ($($test:ident: $row:expr;)*) => {
        $(alone! {
            fn $test() {
                let mut row: Row = $row;
                row.name = stringify!($test);
                steps::everywhere(row.name, |fault, point| act(row, fault, point));
            }
        })*
    };
}

const SMALL: Options = Options::new().first(4096).limit(1 << 16);

const PLAIN: Row = Row {
    name: "",
    options: SMALL,
    lengths: &[3, 9],
    waits: Waits::Not,
    ready: |victim| {
        victim.attach();
        victim.send();
    },
    work: Victim::send,
};

rows! {
    attach: Row {
        lengths: &[],
        ready: |_| {},
        work: Victim::attach,
        ..PLAIN
    };
    attach_another: Row {
        work: |victim| victim.second = Some(victim.sender.as_ref().unwrap().try_clone().unwrap()),
        lengths: &[3],
        ..PLAIN
    };
    send: PLAIN;
    send_the_first: Row {
        lengths: &[3],
        ready: Victim::attach,
        ..PLAIN
    };
    send_to_one_who_sleeps: Row { waits: Waits::Asleep, ..PLAIN };
    send_to_an_event_loop: Row { waits: Waits::OnDescriptor, ..PLAIN };
    send_many: Row {
        lengths: &[3, 9, 0, 100],
        work: |victim| victim.send_many(3),
        ..PLAIN
    };
    reserve_and_commit: Row { work: Victim::reserve, ..PLAIN };
    reserve_and_forget: Row {
        lengths: &[3],
        work: |victim| {
            let _ = victim.sender.as_mut().unwrap().reserve(10).unwrap();
        },
        ..PLAIN
    };
    // The first block is full: the sender goes on to the second.
    grow: Row { lengths: &[4000, 300], ..PLAIN };
    // The lane grows in the middle of what is shown at once.
    grow_within_many: Row {
        lengths: &[3900, 100, 300, 3],
        work: |victim| victim.send_many(3),
        ..PLAIN
    };
    // The lane grows to a block whose memory is not kept: it is provided in steps.
    grow_beyond_what_is_kept: Row {
        options: Options::new().first(1 << 17).limit(4 << 20).keep(256 << 10),
        lengths: &[130_000, 260_000, 300],
        ready: |victim| {
            victim.attach();
            victim.send();
            victim.send();
        },
        ..PLAIN
    };
    // The rest of the ring is too short for the message.
    skip_to_the_beginning: Row {
        options: Options::new().fixed(4096),
        lengths: &[1500, 1500, 1500],
        waits: Waits::OnDescriptor,
        ready: |victim| {
            victim.attach();
            victim.send();
            victim.send();
        },
        work: Victim::send,
        ..PLAIN
    };
    wait_for_room: Row {
        options: Options::new().fixed(4096),
        lengths: &[1900, 1900, 1900],
        ready: |victim| {
            victim.attach();
            victim.send();
            victim.send();
        },
        work: Victim::send,
        ..PLAIN
    };
    detach: Row {
        lengths: &[3],
        work: |victim| drop(victim.sender.take()),
        ..PLAIN
    };
    detach_from_one_who_sleeps: Row {
        lengths: &[3],
        waits: Waits::Asleep,
        work: |victim| drop(victim.sender.take()),
        ..PLAIN
    };
}
