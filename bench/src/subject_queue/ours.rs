//! Our queue.

use std::os::unix::net::UnixStream;

use procwright::queue::{Error, Invitation, Options, Receiver, Sender};

use super::{Pause, Plan, Rx, Tx, Way};

/// A message at a time: `send`, and `recv_view`, which does not copy.
#[derive(Debug)]
pub struct Sent;

/// The same, with messages that are made in place.
#[derive(Debug)]
pub struct Reserved;

/// `send_many` and `recv_many`.
#[derive(Debug)]
pub struct Many;

/// A receiver, and what it does while there is nothing.
#[derive(Debug)]
pub struct Views {
    receiver: Receiver,
    pause: Option<Pause>,
}

impl Views {
    fn new(plan: &Plan, doors: &[UnixStream]) -> Views {
        let options = match plan.room {
            0 => Options::new(),
            // Half of it is sure to have room.
            room => Options::new().limit(4 * room),
        };
        let mut receiver = options.create().expect("a queue");
        for door in doors {
            let invitation = receiver.invite().expect("an invitation");
            invitation.send(door).expect("the sender");
        }
        Views {
            receiver,
            pause: plan.is_spinning.then(|| plan.pause()),
        }
    }
}

impl Rx for Views {
    #[inline]
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        let Some(pause) = &mut self.pause else {
            return read(&self.receiver.recv_view().expect("a message"));
        };
        loop {
            match self.receiver.try_recv_view() {
                Ok(view) => return read(&view),
                Err(Error::Empty) => pause.pause(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn held(&mut self) -> Option<u64> {
        held(&mut self.receiver)
    }

    fn rest(&mut self) {
        assert!(matches!(self.receiver.try_recv_view(), Err(Error::Empty)));
    }
}

/// What the queue's file has.
fn held(receiver: &mut Receiver) -> Option<u64> {
    let invitation = receiver.invite().ok()?;
    let stat = rustix::fs::fstat(invitation.files()[0]).ok()?;
    Some(stat.st_blocks as u64 * 512)
}

/// A receiver of batches.
#[derive(Debug)]
pub struct Batches(Views);

/// So many at a time.
const BATCH: usize = 64;

impl Rx for Batches {
    #[inline]
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        if self.0.pause.is_some() {
            return self.0.recv(read);
        }
        let batch = self.0.receiver.recv_many(BATCH).expect("messages");
        batch.iter().for_each(&mut read);
    }
}

fn attach(door: &UnixStream) -> Sender {
    let invitation = Invitation::receive(door).expect("an invitation");
    Sender::attach(invitation).expect("a lane")
}

/// A sender and where its messages are made.
#[derive(Debug)]
pub struct Copies {
    sender: Sender,
    bytes: Vec<u8>,
}

impl Copies {
    fn new(plan: &Plan, door: &UnixStream) -> Copies {
        Copies {
            sender: attach(door),
            bytes: vec![0; plan.length],
        }
    }
}

impl Tx for Copies {
    #[inline]
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let bytes = &mut self.bytes[..length];
        fill(bytes);
        self.sender.send(bytes).expect("the receiver");
    }
}

/// A sender of messages that are made in place.
#[derive(Debug)]
pub struct InPlace(Sender);

impl Tx for InPlace {
    #[inline]
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let mut place = self.0.reserve(length).expect("the receiver");
        fill(&mut place);
        place.commit();
    }
}

/// A sender of batches.
#[derive(Debug)]
pub struct Batched {
    sender: Sender,
    bytes: Vec<u8>,
}

impl Tx for Batched {
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let bytes = &mut self.bytes[..length];
        fill(bytes);
        self.sender.send(bytes).expect("the receiver");
    }

    fn send_many(&mut self, count: u64, length: usize, mut fill: impl FnMut(u64, &mut [u8])) {
        let all = count as usize * length;
        self.bytes.resize(self.bytes.len().max(all), 0);
        for (number, bytes) in (0..).zip(self.bytes[..all].chunks_exact_mut(length)) {
            fill(number, bytes);
        }
        let messages = self.bytes[..all].chunks_exact(length);
        self.sender.send_many(messages).expect("the receiver");
    }
}

macro_rules! way {
    ($way:ty, $rx:ty, $tx:ty, $receiver:expr, $sender:expr) => {
        impl Way for $way {
            type Common = ();
            type Rx = $rx;
            type Tx = $tx;

            fn common(_: &Plan) -> Result<(), String> {
                Ok(())
            }

            fn receiver((): &(), plan: &Plan, doors: &[UnixStream]) -> $rx {
                $receiver(Views::new(plan, doors))
            }

            fn sender((): &(), plan: &Plan, _: usize, door: &UnixStream) -> $tx {
                $sender(plan, door)
            }
        }
    };
}

way!(Sent, Views, Copies, |views| views, Copies::new);
way!(Reserved, Views, InPlace, |views| views, |_, door| InPlace(
    attach(door)
));
way!(Many, Batches, Batched, Batches, |plan: &Plan, door| {
    Batched {
        sender: attach(door),
        bytes: vec![0; plan.length],
    }
});
