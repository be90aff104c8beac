//! Models of all that two processors can see of a lane and of the receiver's sleep.

use std::io;

use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::{LaneMemory, LaneReader, LaneWriter, MessageSpan, ReserveError, each_word};
use crate::format::{Geometry, MAILBOX_WORDS};
use crate::wakeup::{self, Asleep, ReceiverSleep, WakeOnce, space};
use procwright_os::sync::{AtomicU32, Ordering};

/// A lane whose words loom looks at. Messages are of 8 bytes, and their word is as relaxed
/// as a plain write.
struct Words {
    tail: AtomicU64,
    head: AtomicU64,
    done: AtomicU64,
    stamp: AtomicU64,
    mail: [AtomicU64; MAILBOX_WORDS],
    window: Vec<AtomicU64>,
    fault: Wrong,
    /// Stamp that [`Wrong::LateStamp`] holds back.
    late: AtomicU64,
    /// Stamp that [`Wrong::OneStamp`] has seen before.
    seen: AtomicU64,
}

/// Fault of a lane that the model is to find.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// The tail is stored without an order.
    Tail,
    /// The stamp is stored after the mailbox's bytes.
    LateStamp,
    /// The stamp is not read again when the bytes were copied.
    OneStamp,
}

#[derive(Clone)]
struct ModelEnd(Arc<Words>);

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

impl LaneMemory for ModelEnd {
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
    fn record(&self, offset: u64) -> u64 {
        self.0.window[offset as usize / 8].load(Ordering::Relaxed)
    }
    fn set_record(&self, offset: u64, word: u64) {
        self.0.window[offset as usize / 8].store(word, Ordering::Relaxed);
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
    fn post(&self, offset: u64, bytes: &[u8]) {
        // Messages are of 8 bytes.
        each_word(bytes, &self.0.mail, &[offset], |mail, offset, word| {
            mail.store(word, Ordering::Relaxed);
            self.set_record(*offset, word);
        });
    }
    fn copy_in(&self, offset: u64, bytes: &[u8]) {
        self.set_record(offset, u64::from_le_bytes(bytes.try_into().unwrap()));
    }
    fn provide(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn discard(&self, offset: u64, length: u64) {
        for at in offset / 8..(offset + length) / 8 {
            self.0.window[at as usize].store(0, Ordering::Relaxed);
        }
    }
}

/// A futex: a word to sleep on, as the kernel does it.
struct Futex {
    word: AtomicU32,
    /// True if a sleeper was woken.
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

    /// Returns whether a thread that goes to sleep while the word is `value` sleeps for
    /// ever, when all that the other threads will ever do is what `others` does.
    fn is_slept_on(&self, value: u32, others: thread::JoinHandle<()>) -> bool {
        let mut woken = self.queue.lock().unwrap();
        let sleeps = self.word.load(Ordering::Relaxed) == value;
        *woken = false;
        drop(woken);
        others.join().unwrap();
        sleeps && !*self.queue.lock().unwrap()
    }
}

fn put(writer: &mut LaneWriter<ModelEnd>, number: u64) -> Result<(), ReserveError> {
    let span = writer.reserve(8, true)?;
    writer.fill(span, &number.to_le_bytes());
    writer.finish(span, 8);
    Ok(())
}

fn read(reader: &LaneReader<ModelEnd>, span: MessageSpan) -> u64 {
    assert_eq!(span.length, 8);
    match reader.mail(span) {
        Some(mail) => u64::from_ne_bytes(mail.try_into().unwrap()),
        None => reader.memory().record(span.at),
    }
}

/// Goes through all orders in which threads are interrupted up to twice by each other;
/// loads see old values in all ways. Without a bound these take hours.
fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(BOUND);
    builder.check(body);
}

const BOUND: usize = 2;

/// Part of the protocol that is left out, to see that the model finds it.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The receiver says that it sleeps, and looks before others can see that.
    NoFenceAsleep,
    /// A sender looks whether the receiver sleeps before others see the message.
    NoFenceRinging,
    /// The receiver does not look once more.
    NoLastLook,
}

fn arm(sleeper: &mut ReceiverSleep, bell: &AtomicU32, fault: Fault) -> u32 {
    if fault != Fault::NoFenceAsleep {
        return sleeper.announce(bell, Asleep::Word);
    }
    // `announce` without the fence.
    bell.store(1 << 2 | 1, Ordering::Relaxed);
    1 << 2 | 1
}

fn ring(wake_once: &mut WakeOnce, bell: &Futex, fault: Fault) {
    let wanted = match fault {
        Fault::NoFenceRinging => {
            // `wake_needed` without the fence.
            let value = bell.word.load(Ordering::Relaxed);
            value != 0 && {
                let rung = value | 3;
                let _ =
                    bell.word
                        .compare_exchange(value, rung, Ordering::Relaxed, Ordering::Relaxed);
                true
            }
        }
        _ => wake_once.wake_needed(&bell.word).is_some(),
    };
    if wanted {
        bell.wake();
    }
}

/// Receives one message of any of these lanes.
fn receive(lanes: &mut [LaneReader<ModelEnd>], bell: &Futex, sleeper: &mut ReceiverSleep) -> u64 {
    let mut look = || {
        lanes.iter_mut().find_map(|lane| {
            let span = lane.next().unwrap();
            let number = span.map(|span| read(lane, span));
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
        sleeper.end(&bell.word);
        if let Some(number) = last {
            return number;
        }
    }
}

/// Shows these messages, with growth from block to block on the way.
fn send(words: Arc<Words>, bell: &Futex, numbers: u64, fault: Fault) {
    let mut writer = LaneWriter::new(ModelEnd(words), shape()).unwrap();
    let mut wake_once = WakeOnce::new();
    for number in 1..=numbers {
        put(&mut writer, number).unwrap();
        writer.publish();
        ring(&mut wake_once, bell, fault);
    }
}

/// Blocks of which a message and a jump fill the first.
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
        let mut lanes = [LaneReader::new(ModelEnd(words), shape()).unwrap()];
        let mut sleeper = ReceiverSleep::default();
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
        let mut lane = LaneReader::new(ModelEnd(words), shape()).unwrap();
        let value = arm(&mut ReceiverSleep::default(), &bell.word, fault);
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
fn loom_without_the_receivers_fence_a_message_is_slept_through() {
    go_to_sleep(Fault::NoFenceAsleep);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn loom_without_the_senders_fence_a_message_is_slept_through() {
    go_to_sleep(Fault::NoFenceRinging);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn loom_without_the_last_look_a_message_is_slept_through() {
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
                let mut writer = LaneWriter::new(ModelEnd(words), shape).unwrap();
                for number in 1..=3 {
                    put(&mut writer, number).unwrap();
                    writer.publish();
                }
            })
        };
        let mut reader = LaneReader::new(ModelEnd(words), shape).unwrap();
        for number in 1..=3 {
            let span = loop {
                match reader.next().unwrap() {
                    Some(span) => break span,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(read(&reader, span), number);
            reader.release();
        }
        sender.join().unwrap();
    });
}

#[test]
fn loom_visible_messages_are_whole() {
    grow(Wrong::Nothing);
}

#[test]
#[should_panic]
fn loom_without_release_visible_messages_are_not_whole() {
    grow(Wrong::Tail);
}

/// Two short messages, the second of which may be written to the mailbox while the receiver
/// copies the first.
fn find_in_mailbox(fault: Wrong) {
    model(move || {
        let shape = Geometry::tiny(6, 1, 1);
        let words = Words::with(&shape, fault);
        let mut writer = LaneWriter::new(ModelEnd(words.clone()), shape).unwrap();
        let mut reader = LaneReader::new(ModelEnd(words), shape).unwrap();
        // The first message gets memory, and does not use the mailbox.
        put(&mut writer, 1).unwrap();
        writer.publish();
        let span = reader.next().unwrap().unwrap();
        assert_eq!(read(&reader, span), 1);
        let sender = thread::spawn(move || {
            for number in 2..=3u64 {
                assert!(writer.send_short(&number.to_le_bytes()));
            }
        });
        for number in 2..=3 {
            let span = loop {
                match reader.next().unwrap() {
                    Some(span) => break span,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(read(&reader, span), number);
        }
        sender.join().unwrap();
    });
}

#[test]
fn loom_messages_in_the_mailbox_are_whole() {
    find_in_mailbox(Wrong::Nothing);
}

#[test]
#[should_panic(expected = "left: 3")]
fn loom_with_a_late_stamp_the_mailbox_is_not_whole() {
    find_in_mailbox(Wrong::LateStamp);
}

#[test]
#[should_panic(expected = "left: 3")]
fn loom_with_one_load_of_the_stamp_the_mailbox_is_not_whole() {
    find_in_mailbox(Wrong::OneStamp);
}

/// A sender that waits for room in a lane that may not grow, while the receiver reads one
/// message and then does something else.
fn wait_for_space(fenced: bool) {
    loom::model(move || {
        let shape = Geometry::tiny(5, 1, 32);
        let (words, room) = (Words::new(&shape), Futex::new());
        let mut writer = LaneWriter::new(ModelEnd(words.clone()), shape).unwrap();
        put(&mut writer, 1).unwrap();
        writer.publish();
        let receiver = {
            let room = room.clone();
            thread::spawn(move || {
                let mut reader = LaneReader::new(ModelEnd(words), shape).unwrap();
                let span = reader.next().unwrap().unwrap();
                assert_eq!(read(&reader, span), 1);
                assert!(reader.release());
                let made = match fenced {
                    true => space::take_waiter(&room.word),
                    false => room.word.load(Ordering::Relaxed) != 0,
                };
                if made {
                    room.word.store(0, Ordering::Relaxed);
                    room.wake();
                }
            })
        };
        space::announce_wait(&room.word);
        // Room for a skip is room, too: then the receiver has to read that.
        let full = |writer: &LaneWriter<ModelEnd>| writer.memory().head() == 0;
        let forever = full(&writer) && room.is_slept_on(space::WAITING, receiver);
        assert!(!forever, "asleep for ever");
    });
}

#[test]
fn loom_a_sender_that_waits_for_room_is_woken() {
    wait_for_space(true);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn loom_without_the_receivers_fence_a_waiting_sender_is_not_woken() {
    wait_for_space(false);
}

/// A sender that is stopped when it was about to wake the receiver does not keep another's
/// message from it.
#[test]
fn loom_a_stopped_sender_blocks_no_other() {
    model(|| {
        let bell = Futex::new();
        let shape = Geometry::tiny(5, 1, 32);
        let lanes = [Words::new(&shape), Words::new(&shape)];
        let mut threads = Vec::new();
        for (i, words) in lanes.iter().cloned().enumerate() {
            let bell = bell.clone();
            threads.push(thread::spawn(move || {
                let mut writer = LaneWriter::new(ModelEnd(words), shape).unwrap();
                put(&mut writer, i as u64).unwrap();
                writer.publish();
                let rings = WakeOnce::new().wake_needed(&bell.word).is_some();
                if rings && i > 0 {
                    bell.wake();
                }
            }));
        }
        let mut readers = lanes.map(|words| LaneReader::new(ModelEnd(words), shape).unwrap());
        let mut sleeper = ReceiverSleep::default();
        while receive(&mut readers, &bell, &mut sleeper) != 1 {}
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Two senders wait for a lane, and one after the other of two lanes becomes free. Each of
/// them that looks takes a lane that is free.
fn wait_for_lanes(told: bool) {
    model(move || {
        let (bell, lanes) = (
            Futex::new(),
            Arc::new([AtomicU32::new(1), AtomicU32::new(1)]),
        );
        let freeing = {
            let (bell, lanes) = (bell.clone(), lanes.clone());
            thread::spawn(move || {
                for lane in lanes.iter() {
                    lane.store(0, Ordering::Release);
                    if told && wakeup::lane::take_waiters(&bell.word) {
                        bell.wake();
                    }
                }
            })
        };
        let take = |lanes: &[AtomicU32; 2]| {
            let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            let mut lanes = lanes.iter();
            lanes.any(|lane| lane.compare_exchange(0, 1, done, failed).is_ok())
        };
        let other = {
            let (bell, lanes) = (bell.clone(), lanes.clone());
            thread::spawn(move || {
                wakeup::lane::announce_wait(&bell.word);
                // It may have had enough of waiting.
                take(&lanes)
            })
        };
        let value = wakeup::lane::announce_wait(&bell.word);
        let forever = !take(&lanes) && bell.is_slept_on(value, freeing);
        let _ = other.join();
        assert!(!forever, "asleep for ever");
    });
}

#[test]
fn loom_who_waits_for_a_lane_is_woken() {
    wait_for_lanes(true);
}

#[test]
#[should_panic(expected = "asleep for ever")]
fn loom_without_a_word_who_waits_for_a_lane_is_not_woken() {
    wait_for_lanes(false);
}
