//! All that two processors can see of a lane and of its bell.

use std::io;

use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::{Consumer, Memory, Place, Producer, Shortage, each_word};
use crate::queue::bell::{Ringer, Sleep, Sleeper, space};
use crate::queue::format::{Geometry, MAILBOX};
use crate::sync::{AtomicU32, Ordering};

/// A lane whose words loom looks at. Messages are of 8 bytes, and their word is as
/// relaxed as a plain write.
struct Words {
    tail: AtomicU64,
    head: AtomicU64,
    done: AtomicU64,
    stamp: AtomicU64,
    mail: [AtomicU64; MAILBOX],
    window: Vec<AtomicU64>,
    fault: Wrong,
    /// What [`Wrong::LateStamp`] holds back.
    late: AtomicU64,
    /// What [`Wrong::OneStamp`] has seen before.
    seen: AtomicU64,
}

/// The fault to be found.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// The tail is stored without an order.
    Tail,
    /// Whose the mailbox's bytes are is said after they are there.
    LateStamp,
    /// ... or is not asked again when they were copied.
    OneStamp,
}

#[derive(Clone)]
struct End(Arc<Words>);

impl Words {
    fn new(shape: &Geometry) -> Arc<Words> {
        Words::with(shape, Wrong::Nothing)
    }

    fn with(shape: &Geometry, fault: Wrong) -> Arc<Words> {
        Arc::new(Words {
            tail: AtomicU64::new(0),
            head: AtomicU64::new(0),
            done: AtomicU64::new(0),
            stamp: AtomicU64::new(0),
            mail: std::array::from_fn(|_| AtomicU64::new(0)),
            window: (0..shape.window() / 8).map(|_| AtomicU64::new(0)).collect(),
            fault,
            late: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        })
    }
}

impl Memory for End {
    fn tail(&self) -> u64 {
        self.0.tail.load(Ordering::Acquire)
    }
    fn set_tail(&self, word: u64) {
        let order = match self.0.fault {
            Wrong::Tail => Ordering::Relaxed,
            _ => Ordering::Release,
        };
        if self.0.fault == Wrong::LateStamp {
            let stamp = self.0.late.load(Ordering::Relaxed);
            self.0.stamp.store(stamp, Ordering::Relaxed);
        }
        self.0.tail.store(word, order);
    }
    fn head(&self) -> u64 {
        self.0.head.load(Ordering::Acquire)
    }
    fn set_head(&self, word: u64) {
        self.0.head.store(word, Ordering::Release);
    }
    fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }
    fn set_done(&self, word: u64) {
        self.0.done.store(word, Ordering::Relaxed);
    }
    fn is_awaited(&self) -> bool {
        false
    }
    fn record(&self, place: u64) -> u64 {
        self.0.window[place as usize / 8].load(Ordering::Relaxed)
    }
    fn set_record(&self, place: u64, word: u64) {
        self.0.window[place as usize / 8].store(word, Ordering::Relaxed);
    }
    fn stamp(&self) -> u64 {
        let seen = self.0.seen.load(Ordering::Relaxed);
        if self.0.fault == Wrong::OneStamp && seen != 0 {
            self.0.seen.store(0, Ordering::Relaxed);
            return seen;
        }
        let stamp = self.0.stamp.load(Ordering::Relaxed);
        if self.0.fault == Wrong::OneStamp {
            self.0.seen.store(stamp, Ordering::Relaxed);
        }
        stamp
    }
    fn set_stamp(&self, stamp: u64) {
        match self.0.fault {
            Wrong::LateStamp => self.0.late.store(stamp, Ordering::Relaxed),
            _ => self.0.stamp.store(stamp, Ordering::Relaxed),
        }
    }
    fn mail(&self, at: usize) -> u64 {
        // Messages are of 8 bytes.
        match at {
            0 => self.0.mail[0].load(Ordering::Relaxed),
            _ => 0,
        }
    }
    fn post(&self, place: u64, bytes: &[u8]) {
        // Messages are of 8 bytes.
        each_word(bytes, &self.0.mail, &[place], |mail, place, word| {
            mail.store(word, Ordering::Relaxed);
            self.set_record(*place, word);
        });
    }
    fn copy_in(&self, place: u64, bytes: &[u8]) {
        self.set_record(place, u64::from_le_bytes(bytes.try_into().unwrap()));
    }
    fn provide(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn discard(&self, place: u64, length: u64) {
        for at in place / 8..(place + length) / 8 {
            self.0.window[at as usize].store(0, Ordering::Relaxed);
        }
    }
}

/// A word to sleep on, as the kernel does it.
struct Futex {
    word: AtomicU32,
    /// Whether anybody was woken.
    queue: Mutex<bool>,
    bell: Condvar,
}

impl Futex {
    fn new() -> Arc<Futex> {
        Arc::new(Futex {
            word: AtomicU32::new(0),
            queue: Mutex::new(false),
            bell: Condvar::new(),
        })
    }

    fn sleep(&self, value: u32) {
        let queue = self.queue.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == value {
            drop(self.bell.wait(queue).unwrap());
        }
    }

    fn wake(&self) {
        *self.queue.lock().unwrap() = true;
        self.bell.notify_all();
    }

    /// Whether who goes to sleep while the word is `value` sleeps for ever, when
    /// all that others will ever do is what `others` does.
    fn is_slept_on(&self, value: u32, others: thread::JoinHandle<()>) -> bool {
        let mut woken = self.queue.lock().unwrap();
        let sleeps = self.word.load(Ordering::Relaxed) == value;
        *woken = false;
        drop(woken);
        others.join().unwrap();
        sleeps && !*self.queue.lock().unwrap()
    }
}

fn put(producer: &mut Producer<End>, number: u64) -> Result<(), Shortage> {
    let place = producer.reserve(8, true)?;
    producer.fill(place, &number.to_le_bytes());
    producer.finish(place, 8);
    Ok(())
}

fn read(consumer: &Consumer<End>, place: Place) -> u64 {
    assert_eq!(place.length, 8);
    match consumer.mail(place) {
        Some(mail) => u64::from_ne_bytes(mail.try_into().unwrap()),
        None => consumer.memory().record(place.at),
    }
}

/// All orders in which threads are interrupted up to twice by each other;
/// loads see old values in all ways. Without a bound these take hours.
fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(BOUND);
    builder.check(body);
}

const BOUND: usize = 2;

/// What of the protocol is left out, to see that the model finds it.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The receiver says that it sleeps, and looks before others can see it.
    NoFenceAsleep,
    /// A sender looks whether the receiver sleeps before others see the message.
    NoFenceRinging,
    /// The receiver does not look once more.
    NoLastLook,
}

fn arm(sleeper: &mut Sleeper, bell: &AtomicU32, fault: Fault) -> u32 {
    if fault != Fault::NoFenceAsleep {
        return sleeper.arm(bell, Sleep::Word);
    }
    // As `arm`, but for the fence.
    bell.store(1 << 2 | 1, Ordering::Relaxed);
    1 << 2 | 1
}

fn ring(ringer: &mut Ringer, bell: &Futex, fault: Fault) {
    let wanted = match fault {
        Fault::NoFenceRinging => {
            // As `ring`, but for the fence.
            let value = bell.word.load(Ordering::Relaxed);
            value != 0 && {
                let rung = value | 3;
                let _ =
                    bell.word
                        .compare_exchange(value, rung, Ordering::Relaxed, Ordering::Relaxed);
                true
            }
        }
        _ => ringer.ring(&bell.word).is_some(),
    };
    if wanted {
        bell.wake();
    }
}

/// The receiver gets one message of any of these lanes.
fn receive(lanes: &mut [Consumer<End>], bell: &Futex, sleeper: &mut Sleeper) -> u64 {
    let mut look = || {
        lanes.iter_mut().find_map(|lane| {
            let place = lane.next().unwrap();
            let number = place.map(|place| read(lane, place));
            lane.release();
            number
        })
    };
    loop {
        if let Some(number) = look() {
            return number;
        }
        let value = arm(sleeper, &bell.word, Fault::None);
        let last = look();
        if last.is_none() {
            bell.sleep(value);
        }
        sleeper.disarm(&bell.word);
        if let Some(number) = last {
            return number;
        }
    }
}

/// Shows these messages, with growth from block to block on the way.
fn send(words: Arc<Words>, bell: &Futex, numbers: u64, fault: Fault) {
    let mut producer = Producer::new(End(words), shape()).unwrap();
    let mut ringer = Ringer::new();
    for number in 1..=numbers {
        put(&mut producer, number).unwrap();
        producer.publish();
        ring(&mut ringer, bell, fault);
    }
}

/// A message and a jump fill the first block.
fn shape() -> Geometry {
    Geometry::tiny(5, 2, 1)
}

/// The receiver sleeps whenever there is nothing.
fn send_and_sleep(numbers: u64) {
    model(move || {
        let (words, bell) = (Words::new(&shape()), Futex::new());
        let sender = {
            let (words, bell) = (words.clone(), bell.clone());
            thread::spawn(move || send(words, &bell, numbers, Fault::None))
        };
        let mut lanes = [Consumer::new(End(words), shape()).unwrap()];
        let mut sleeper = Sleeper::default();
        for number in 1..=numbers {
            assert_eq!(receive(&mut lanes, &bell, &mut sleeper), number);
        }
        sender.join().unwrap();
    });
}

/// One message, and one sleep of the receiver.
fn go_to_sleep(fault: Fault) {
    loom::model(move || {
        let (words, bell) = (Words::new(&shape()), Futex::new());
        let sender = {
            let (words, bell) = (words.clone(), bell.clone());
            thread::spawn(move || send(words, &bell, 1, fault))
        };
        let mut lane = Consumer::new(End(words), shape()).unwrap();
        let value = arm(&mut Sleeper::default(), &bell.word, fault);
        let nothing = fault == Fault::NoLastLook || lane.next().unwrap().is_none();
        let forever = nothing && bell.is_slept_on(value, sender);
        assert!(!forever, "asleep for ever");
    });
}

#[test]
fn loom_no_message_is_slept_through() {
    send_and_sleep(2);
    go_to_sleep(Fault::None);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn loom_without_the_receivers_fence_one_is() {
    go_to_sleep(Fault::NoFenceAsleep);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn loom_without_the_senders_fence_one_is() {
    go_to_sleep(Fault::NoFenceRinging);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn loom_without_the_last_look_one_is() {
    go_to_sleep(Fault::NoLastLook);
}

/// Growth, and back to a smaller block, while the receiver reads all the time.
fn grow(fault: Wrong) {
    model(move || {
        let shape = Geometry::tiny(5, 3, 1);
        let words = Words::with(&shape, fault);
        let sender = {
            let words = words.clone();
            thread::spawn(move || {
                let mut producer = Producer::new(End(words), shape).unwrap();
                for number in 1..=3 {
                    put(&mut producer, number).unwrap();
                    producer.publish();
                }
            })
        };
        let mut consumer = Consumer::new(End(words), shape).unwrap();
        for number in 1..=3 {
            let place = loop {
                match consumer.next().unwrap() {
                    Some(place) => break place,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(read(&consumer, place), number);
            consumer.release();
        }
        sender.join().unwrap();
    });
}

#[test]
fn loom_what_is_visible_is_whole() {
    grow(Wrong::Nothing);
}

#[test]
#[should_panic]
fn loom_without_release_it_is_not() {
    grow(Wrong::Tail);
}

/// Two short messages, the second of which may be written to the mailbox while the
/// receiver copies the first.
fn find_in_mailbox(fault: Wrong) {
    model(move || {
        let shape = Geometry::tiny(6, 1, 1);
        let words = Words::with(&shape, fault);
        let mut producer = Producer::new(End(words.clone()), shape).unwrap();
        let mut consumer = Consumer::new(End(words), shape).unwrap();
        // The first one gets memory, and is not short.
        put(&mut producer, 1).unwrap();
        producer.publish();
        let place = consumer.next().unwrap().unwrap();
        assert_eq!(read(&consumer, place), 1);
        let sender = thread::spawn(move || {
            for number in 2..=3u64 {
                assert!(producer.send_short(&number.to_le_bytes()));
            }
        });
        for number in 2..=3 {
            let place = loop {
                match consumer.next().unwrap() {
                    Some(place) => break place,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(read(&consumer, place), number);
        }
        sender.join().unwrap();
    });
}

#[test]
fn loom_what_is_in_the_mailbox_is_whole() {
    find_in_mailbox(Wrong::Nothing);
}

#[test]
#[should_panic(expected = "left: 3")]
fn loom_with_a_late_stamp_it_is_anothers() {
    find_in_mailbox(Wrong::LateStamp);
}

#[test]
#[should_panic(expected = "left: 3")]
fn loom_with_one_look_at_the_stamp_it_is_anothers() {
    find_in_mailbox(Wrong::OneStamp);
}

/// A sender that waits for room in a lane that may not grow, while the receiver
/// reads one message and then does something else.
fn wait_for_space(fenced: bool) {
    loom::model(move || {
        let shape = Geometry::tiny(5, 1, 32);
        let (words, room) = (Words::new(&shape), Futex::new());
        let mut producer = Producer::new(End(words.clone()), shape).unwrap();
        put(&mut producer, 1).unwrap();
        producer.publish();
        let receiver = {
            let room = room.clone();
            thread::spawn(move || {
                let mut consumer = Consumer::new(End(words), shape).unwrap();
                let place = consumer.next().unwrap().unwrap();
                assert_eq!(read(&consumer, place), 1);
                assert!(consumer.release());
                let made = match fenced {
                    true => space::made(&room.word),
                    false => room.word.load(Ordering::Relaxed) != 0,
                };
                if made {
                    room.word.store(0, Ordering::Relaxed);
                    room.wake();
                }
            })
        };
        space::wait(&room.word);
        // Room for a skip is room, too: then the receiver has to read that.
        let full = |producer: &Producer<End>| producer.memory().head() == 0;
        let forever = full(&producer) && room.is_slept_on(space::WAITS, receiver);
        assert!(!forever, "asleep for ever");
    });
}

#[test]
fn loom_who_waits_for_room_is_woken() {
    wait_for_space(true);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn loom_without_the_receivers_fence_it_is_not() {
    wait_for_space(false);
}

/// A sender that is stopped when it was about to wake the receiver does not keep
/// another's message from it.
#[test]
fn loom_a_stopped_sender_blocks_nobody() {
    model(|| {
        let bell = Futex::new();
        let shape = Geometry::tiny(5, 1, 32);
        let lanes = [Words::new(&shape), Words::new(&shape)];
        let mut threads = Vec::new();
        for (i, words) in lanes.iter().cloned().enumerate() {
            let bell = bell.clone();
            threads.push(thread::spawn(move || {
                let mut producer = Producer::new(End(words), shape).unwrap();
                put(&mut producer, i as u64).unwrap();
                producer.publish();
                let rings = Ringer::new().ring(&bell.word).is_some();
                if rings && i > 0 {
                    bell.wake();
                }
            }));
        }
        let mut consumers = lanes.map(|words| Consumer::new(End(words), shape).unwrap());
        let mut sleeper = Sleeper::default();
        while receive(&mut consumers, &bell, &mut sleeper) != 1 {}
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
