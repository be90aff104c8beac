//! cloudtoid-interprocess 3: a ring for all, in a file of its own in memory. Every
//! message is copied in and out. It waits in steps of at most 5 ms; for room its
//! senders can only look again.

use std::os::unix::net::UnixStream;

use cloudtoid_interprocess::{Error, Options, Publisher, Subscriber};
use procwright_bench::subject_queue::{Pause, Plan, Rx, Tx, Way, party};

use crate::{name, room};

/// A message at a time.
pub struct Single;

/// `try_send_batch`.
pub struct Batch;

pub struct Receiver {
    subscriber: Subscriber,
    bytes: Vec<u8>,
    pause: Option<Pause>,
}

pub struct Sender {
    publisher: Publisher,
    bytes: Vec<u8>,
    pause: Pause,
}

fn common(plan: &Plan) -> Result<Options, String> {
    // A header and a multiple of 8.
    let capacity = room(plan, 4 * plan.senders) * (plan.length + 16);
    Ok(Options::new(name(), capacity).with_path("/dev/shm"))
}

impl Receiver {
    fn new(options: &Options, plan: &Plan, doors: &[UnixStream]) -> Receiver {
        let subscriber = Subscriber::open(options).expect("a subscriber");
        doors.iter().for_each(|door| party::tell(door, 0));
        Receiver {
            subscriber,
            bytes: vec![0; plan.length],
            pause: plan.is_spinning.then(|| plan.pause()),
        }
    }
}

impl Sender {
    fn new(options: &Options, plan: &Plan, door: &UnixStream) -> Sender {
        party::hear(door);
        Sender {
            publisher: Publisher::open(options).expect("a publisher"),
            bytes: vec![0; plan.length],
            pause: plan.pause(),
        }
    }
}

impl Rx for Receiver {
    #[inline]
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        let Some(pause) = &mut self.pause else {
            return read(&self.subscriber.recv().expect("a message"));
        };
        loop {
            match self.subscriber.try_recv_into(&mut self.bytes) {
                Ok(Some(length)) => return read(&self.bytes[..length]),
                Ok(None) => pause.pause(),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

impl Tx for Sender {
    #[inline]
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let bytes = &mut self.bytes[..length];
        fill(bytes);
        loop {
            match self.publisher.try_send(bytes) {
                Ok(()) => return,
                Err(Error::Full) => self.pause.pause(),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

pub struct BatchSender(Sender);

impl Tx for BatchSender {
    fn send(&mut self, length: usize, fill: impl FnMut(&mut [u8])) {
        self.0.send(length, fill);
    }

    fn send_many(&mut self, count: u64, length: usize, mut fill: impl FnMut(u64, &mut [u8])) {
        let Sender {
            publisher,
            bytes,
            pause,
        } = &mut self.0;
        let all = count as usize * length;
        bytes.resize(bytes.len().max(all), 0);
        for (number, bytes) in (0..).zip(bytes[..all].chunks_exact_mut(length)) {
            fill(number, bytes);
        }
        let messages: Vec<&[u8]> = bytes[..all].chunks_exact(length).collect();
        let mut rest = messages.as_slice();
        while !rest.is_empty() {
            let sent = publisher.try_send_batch(rest).expect("a queue");
            if sent == 0 {
                pause.pause();
            }
            rest = &rest[sent..];
        }
    }
}

impl Way for Single {
    type Common = Options;
    type Rx = Receiver;
    type Tx = Sender;

    fn common(plan: &Plan) -> Result<Options, String> {
        common(plan)
    }

    fn receiver(options: &Options, plan: &Plan, doors: &[UnixStream]) -> Receiver {
        Receiver::new(options, plan, doors)
    }

    fn sender(options: &Options, plan: &Plan, _: usize, door: &UnixStream) -> Sender {
        Sender::new(options, plan, door)
    }
}

impl Way for Batch {
    type Common = Options;
    type Rx = Receiver;
    type Tx = BatchSender;

    fn common(plan: &Plan) -> Result<Options, String> {
        common(plan)
    }

    fn receiver(options: &Options, plan: &Plan, doors: &[UnixStream]) -> Receiver {
        Receiver::new(options, plan, doors)
    }

    fn sender(options: &Options, plan: &Plan, _: usize, door: &UnixStream) -> BatchSender {
        BatchSender(Sender::new(options, plan, door))
    }
}
