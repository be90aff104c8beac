//! rtrb 0.4, between threads: what a ring can do that goes no further. One for each
//! sender. Its length is a multiple of a message's, so that none is cut in two, and
//! each is made and read in place.

use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use procwright_bench::subject_queue::{Pause, Plan, Rx, Tx, Way};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::room;

pub struct Rtrb;

pub struct Common {
    producers: Mutex<Vec<Option<Producer<u64>>>>,
    consumers: Mutex<Vec<Consumer<u64>>>,
}

pub struct Receiver {
    consumers: Vec<Consumer<u64>>,
    words: usize,
    turn: usize,
    pause: Pause,
}

pub struct Sender {
    producer: Producer<u64>,
    pause: Pause,
}

impl Way for Rtrb {
    type Common = Common;
    type Rx = Receiver;
    type Tx = Sender;
    const IS_OF_THREADS: bool = true;

    fn common(plan: &Plan) -> Result<Common, String> {
        if !plan.is_spinning {
            return Err("it only spins".into());
        }
        // The length, and the bytes.
        let words = 1 + plan.length / 8;
        let (producers, consumers) = (0..plan.senders)
            .map(|_| {
                let (mut producer, mut consumer) = RingBuffer::new(room(plan, 8) * words);
                // So that all of it has been written once.
                let all = producer.slots();
                producer
                    .write_chunk(all)
                    .expect("an empty ring")
                    .commit_all();
                consumer.read_chunk(all).expect("a full ring").commit_all();
                (Some(producer), consumer)
            })
            .unzip();
        Ok(Common {
            producers: Mutex::new(producers),
            consumers: Mutex::new(consumers),
        })
    }

    fn receiver(common: &Common, plan: &Plan, _: &[UnixStream]) -> Receiver {
        Receiver {
            consumers: std::mem::take(&mut common.consumers.lock().expect("the rings")),
            words: 1 + plan.length / 8,
            turn: 0,
            pause: plan.pause(),
        }
    }

    fn sender(common: &Common, plan: &Plan, number: usize, _: &UnixStream) -> Sender {
        let mut producers = common.producers.lock().expect("the rings");
        Sender {
            producer: producers[number].take().expect("a ring"),
            pause: plan.pause(),
        }
    }
}

impl Rx for Receiver {
    #[inline]
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        loop {
            let count = self.consumers.len();
            for _ in 0..count {
                let consumer = &mut self.consumers[self.turn];
                self.turn = (self.turn + 1) % count;
                if let Ok(chunk) = consumer.read_chunk(self.words) {
                    let (words, rest) = chunk.as_slices();
                    assert!(rest.is_empty(), "cut in two");
                    // SAFETY: the bytes of these words, for as long as they are lent.
                    let (_, bytes, _) = unsafe { words.align_to::<u8>() };
                    read(&bytes[8..][..words[0] as usize]);
                    chunk.commit_all();
                    return;
                }
            }
            self.pause.pause();
        }
    }
}

impl Tx for Sender {
    #[inline]
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        while self.producer.slots() < 1 + length / 8 {
            self.pause.pause();
        }
        let chunk = self.producer.write_chunk_uninit(1 + length / 8);
        let mut chunk = chunk.expect("room was seen");
        let (words, rest) = chunk.as_mut_slices();
        assert!(rest.is_empty(), "cut in two");
        words[0].write(length as u64);
        // SAFETY: the bytes of these words, for as long as they are lent; all of the
        // ring was written before it was first used.
        let (_, bytes, _) = unsafe { words[1..].assume_init_mut().align_to_mut::<u8>() };
        fill(bytes);
        // SAFETY: as above.
        unsafe { chunk.commit_all() };
    }
}
