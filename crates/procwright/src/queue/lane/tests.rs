use std::collections::VecDeque;
use std::rc::Rc;

use proptest::prelude::*;

use super::heap::{End, Heap};
use super::{Consumer, Memory, Place, Producer, Shortage};
use crate::queue::format::{
    ALIGNED, Cursor, Geometry, Kind, LONG, MAILBOX, RECORD, REFUSED, Record, SHORT, Stamp,
};

/// Eight blocks of 64 bytes to 8 KiB, of which those up to 256 are kept.
fn shape() -> Geometry {
    Geometry::tiny(6, 8, 3)
}

fn producer(heap: &Rc<Heap>) -> Producer<End> {
    let mut producer = Producer::new(heap.end(), heap.shape).unwrap();
    if !cfg!(miri) {
        producer.be_patient();
    }
    producer
}

fn consumer(heap: &Rc<Heap>) -> Consumer<End> {
    Consumer::new(heap.end(), heap.shape).unwrap()
}

/// A message that no other is like.
fn message(number: u64, length: usize) -> Vec<u8> {
    let bytes = number.to_le_bytes().into_iter().cycle();
    bytes
        .map(|byte| byte ^ number as u8 ^ 0x5a)
        .take(length)
        .collect()
}

/// Sends a message in the quickest way.
fn send(producer: &mut Producer<End>, bytes: &[u8]) -> Result<(), Shortage> {
    if !producer.send_short(bytes) {
        put(producer, bytes)?;
        producer.publish();
    }
    Ok(())
}

/// Finishes a message, and does not show it.
fn put(producer: &mut Producer<End>, bytes: &[u8]) -> Result<(), Shortage> {
    let place = producer.reserve(bytes.len() as u64, true)?;
    producer.fill(place, bytes);
    producer.finish(place, place.length);
    Ok(())
}

fn take(consumer: &mut Consumer<End>) -> Option<Vec<u8>> {
    let place = consumer.next().unwrap()?;
    let bytes = consumer.memory().read(place.at, place.length);
    if let Some(mail) = consumer.mail(place) {
        assert_eq!(mail, bytes);
    }
    Some(bytes)
}

/// A look changes nothing, wherever the way leads.
#[test]
fn a_look_goes_no_further() {
    let heap = Heap::new(shape());
    let (mut sender, mut receiver) = (producer(&heap), consumer(&heap));
    // Over the ends of rings, and through several blocks.
    let lengths = [8, 8, 20, 60, 8, 200, 500, 8, 8, 900, 30];
    for (number, length) in lengths.into_iter().enumerate() {
        put(&mut sender, &message(number as u64, length)).unwrap();
    }
    sender.publish();
    for (number, length) in lengths.into_iter().enumerate() {
        for _ in 0..2 {
            assert_eq!(receiver.has_next(), Ok(true));
        }
        assert_eq!(take(&mut receiver), Some(message(number as u64, length)));
    }
    assert_eq!(receiver.has_next(), Ok(false));
    receiver.release();
}

/// All that is there, released.
fn drain(consumer: &mut Consumer<End>) -> Vec<Vec<u8>> {
    let all = std::iter::from_fn(|| take(consumer)).collect();
    consumer.release();
    all
}

#[derive(Clone, Debug)]
enum Step {
    /// Messages of these lengths, shown at once.
    Send(Vec<usize>),
    /// One message, in the quickest way.
    SendOne(usize),
    /// So many messages, and released.
    Receive(usize),
    /// Whether there is one is asked, and nothing is received.
    Ask,
    /// The next one is taken and put back.
    PutBack,
    /// The receiver dies, and another goes on.
    TakeOver,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![4 => 0..40usize, 2 => 0..500usize, 1 => 0..8121usize];
    let short = 0..=SHORT + 8;
    let step = prop_oneof![
        6 => prop::collection::vec(length, 1..4).prop_map(Step::Send),
        6 => short.prop_map(Step::SendOne),
        4 => (1..20usize).prop_map(Step::Receive),
        2 => Just(Step::Receive(1)),
        1 => Just(Step::Receive(usize::MAX)),
        2 => Just(Step::Ask),
        2 => Just(Step::PutBack),
        1 => Just(Step::TakeOver),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

    #[test]
    fn a_lane_is_a_queue(steps in steps()) {
        let heap = Heap::new(shape());
        let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
        let mut model: VecDeque<Vec<u8>> = VecDeque::new();
        let mut number = 0;
        for step in steps {
            match step {
                Step::Send(lengths) => {
                    for length in lengths {
                        number += 1;
                        let bytes = message(number, length);
                        match put(&mut producer, &bytes) {
                            Ok(()) => model.push_back(bytes),
                            Err(Shortage::Full) if model.is_empty() => {
                                // The receiver may have to go on to where the block
                                // begins, and the sender after it.
                                let mut fits = false;
                                for _ in 0..2 {
                                    prop_assert_eq!(take(&mut consumer), None);
                                    consumer.release();
                                    fits = fits || put(&mut producer, &bytes).is_ok();
                                }
                                prop_assert!(fits);
                                model.push_back(bytes);
                            }
                            Err(Shortage::Full) => {}
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                    producer.publish();
                }
                Step::SendOne(length) => {
                    number += 1;
                    let bytes = message(number, length);
                    if send(&mut producer, &bytes).is_ok() {
                        model.push_back(bytes);
                    }
                }
                Step::Receive(most) => {
                    for _ in 0..most {
                        let Some(bytes) = take(&mut consumer) else { break };
                        prop_assert_eq!(Some(bytes), model.pop_front());
                    }
                    consumer.release();
                }
                Step::Ask => {
                    prop_assert_eq!(consumer.has_next(), Ok(!model.is_empty()));
                }
                Step::PutBack => {
                    if let Some(place) = consumer.next().unwrap() {
                        consumer.step_back();
                        prop_assert!(consumer.mail(place).is_none());
                    }
                }
                Step::TakeOver => {
                    // What was taken and not released comes again.
                    consumer = Consumer::new(heap.end(), heap.shape).unwrap();
                    let again: Vec<_> = std::iter::from_fn(|| take(&mut consumer)).collect();
                    prop_assert!(again.ends_with(model.make_contiguous()));
                    consumer.release();
                    model.clear();
                }
            }
        }
        let rest: VecDeque<_> = drain(&mut consumer).into();
        prop_assert_eq!(rest, model);
        // What was used for a flood is free, but for one step.
        prop_assert!(heap.occupied() <= 64 + 128 + 256 + 8192);
        // Any message fits into a lane that is empty, after two looks at most.
        let long = message(0, producer.longest() as usize);
        let fits = (0..3).any(|_| {
            let fits = put(&mut producer, &long).is_ok();
            fits || { take(&mut consumer).is_some() || { consumer.release(); false } }
        });
        prop_assert!(fits);
        producer.publish();
        prop_assert_eq!(take(&mut consumer), Some(long));
    }

    /// Whatever is in a lane: no panic, no endless loop, nothing beyond the window.
    #[test]
    fn any_bytes_may_lie_in_a_lane(
        tail in cursor(),
        head in cursor(),
        bytes in spoiled(),
        stamp in stamp(),
        mail in any::<[u64; MAILBOX]>(),
    ) {
        let heap = Heap::new(Geometry::tiny(6, 3, 1));
        heap.spoil(tail, head, &bytes);
        heap.spoil_mailbox(stamp, mail);
        let Ok(mut consumer) = Consumer::new(heap.end(), heap.shape) else { return Ok(()) };
        let mut read = 0;
        while let Ok(Some(place)) = consumer.next() {
            prop_assert!(place.at + place.length <= heap.shape.window());
            if let Some(mail) = consumer.mail(place) {
                prop_assert_eq!(mail.len() as u64, place.length);
            }
            read += Record::takes(RECORD, place.length);
            consumer.release();
        }
        prop_assert!(read <= 2 * heap.shape.window(), "{read}");
        drop(Producer::new(heap.end(), heap.shape));
    }
}

fn cursor() -> impl Strategy<Value = u64> {
    let near = (0..4u32, 0..100u64).prop_map(|(block, units)| Cursor {
        block,
        position: units * 8,
    });
    prop_oneof![near.prop_map(Cursor::to_word), any::<u64>()]
}

fn stamp() -> impl Strategy<Value = u64> {
    let near = (0..128u64, 0..100u64).prop_map(|(length, units)| units << 7 | length);
    prop_oneof![near, any::<u64>()]
}

/// Records that could stand where they do, mostly.
fn spoiled() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        (0..80u32).prop_map(|length| Some(Kind::Message(length))),
        (0..80u32).prop_map(|length| Some(Kind::Aligned(length))),
        Just(Some(Kind::Skip)),
        (0..4u32).prop_map(|block| Some(Kind::Jump(block))),
        Just(None),
    ];
    prop::collection::vec((word, any::<u64>(), 0..3u64), 56).prop_map(|words| {
        let words = words.into_iter().zip(0u64..);
        words
            .flat_map(|((kind, any, lap), at)| {
                let word = kind.map_or(any, |kind| Record::to_word(kind, at * 8 + lap * 64));
                word.to_le_bytes()
            })
            .collect()
    })
}

/// The lengths that go through everything: laps, growth over several blocks, long
/// ones, none at all, back again.
fn story() -> Vec<(usize, usize)> {
    let mut story = Vec::new();
    for round in 0..3 {
        // Sent, then taken: less than was sent at first.
        story.extend([(3, 1), (0, 1), (17, 0), (40, 0), (50, 1), (300, 0), (8, 2)]);
        story.extend([(1500 + round, 0), (9, 0), (2500, 1), (24, usize::MAX)]);
        story.extend((0..40).map(|i| (i % 30, usize::from(i % 3 != 0) * 2)));
    }
    story
}

/// Goes through the story until somebody is dead. What the receiver was given is
/// added to `got`; what is sure to be visible is returned.
fn tell(
    producer: &mut Producer<End>,
    consumer: &mut Consumer<End>,
    got: &mut Vec<Vec<u8>>,
) -> Vec<Vec<u8>> {
    let mut shown = Vec::new();
    for (number, (length, takes)) in story().into_iter().enumerate() {
        let bytes = message(number as u64, length);
        let quick = number % 5 != 0 && number % 3 != 0 && producer.send_short(&bytes);
        let mut finished = quick || put(producer, &bytes).is_ok();
        // A second one in the same store.
        let other = message(1000 + number as u64, length / 2);
        let both = finished && number % 5 == 0 && put(producer, &other).is_ok();
        if producer.memory().is_dead() && !quick {
            break;
        }
        producer.publish();
        if producer.memory().is_dead() {
            // It may have been the last store, or the one that was not made.
            let seen = Cursor::of_word(producer.memory().tail());
            finished &= seen == producer.cursor();
        }
        shown.extend(finished.then_some(bytes));
        shown.extend((finished && both).then_some(other));
        if producer.memory().is_dead() {
            break;
        }
        for _ in 0..takes {
            let Some(bytes) = take(consumer) else { break };
            got.push(bytes);
        }
        consumer.release();
        if consumer.memory().is_dead() {
            break;
        }
    }
    shown
}

/// The sender dies after each of its stores: exactly what it has shown arrives,
/// once, and the lane serves the next one.
#[test]
fn a_sender_may_die_anywhere() {
    let mut stores = 0;
    loop {
        let heap = Heap::new(shape());
        let end = heap.end().dies_after(stores);
        let mut producer = Producer::new(end, heap.shape).unwrap();
        let mut consumer = consumer(&heap);
        let mut got = Vec::new();
        let shown = tell(&mut producer, &mut consumer, &mut got);
        got.extend(drain(&mut consumer));
        assert_eq!(got, shown, "after {stores} stores");
        let is_over = !producer.memory().is_dead();
        drop(producer);

        Consumer::clear(consumer.memory(), &heap.shape);
        assert_eq!(heap.occupied(), 0);
        let mut next = self::producer(&heap);
        let mut consumer = self::consumer(&heap);
        put(&mut next, b"next").unwrap();
        next.publish();
        assert_eq!(drain(&mut consumer), [b"next"]);
        if is_over {
            break;
        }
        stores += if cfg!(miri) { 97 } else { 1 };
    }
    assert!(stores > 1000 || cfg!(miri), "{stores}");
}

/// The receiver dies after each of its stores: the next one gets all that the
/// first was not given, and again what it had not released.
#[test]
fn a_receiver_may_die_anywhere() {
    let mut stores = 0;
    loop {
        let heap = Heap::new(shape());
        let mut producer = producer(&heap);
        let end = heap.end().dies_after(stores);
        let mut consumer = Consumer::new(end, heap.shape).unwrap();
        let mut got = Vec::new();
        let shown = tell(&mut producer, &mut consumer, &mut got);
        let is_over = !consumer.memory().is_dead();
        drop(consumer);

        let mut next = self::consumer(&heap);
        let rest = drain(&mut next);
        assert!(shown.ends_with(&rest), "after {stores} stores");
        assert!(
            got.len() + rest.len() >= shown.len(),
            "after {stores} stores"
        );
        put(&mut producer, b"more").unwrap();
        producer.publish();
        assert_eq!(drain(&mut next), [b"more"]);
        if is_over {
            break;
        }
        stores += if cfg!(miri) { 7 } else { 1 };
    }
    assert!(stores > 30 || cfg!(miri), "{stores}");
}

/// What is in the mailbox of a message that was never shown is not taken for one
/// of the next sender's, which begins at the same position.
#[test]
fn a_dead_senders_mailbox_is_not_believed() {
    let heap = Heap::new(shape());
    let mut receiver = consumer(&heap);
    let end = heap.end();
    let mut dying = Producer::new(end.clone(), heap.shape).unwrap();
    // To the middle of the second block, where a first one can begin.
    send(&mut dying, &message(1, 56)).unwrap();
    drain(&mut receiver);
    assert_eq!(Cursor::of_word(end.tail()).position, 128 + 64);
    // Its stamp and its two words, in mailbox and ring.
    let _ = end.dies_after(5);
    assert!(dying.send_short(&message(2, 16)));
    assert_eq!(heap.end().stamp(), Stamp::to_word(16, 192));

    Consumer::clear(receiver.memory(), &heap.shape);
    let (mut next, mut receiver) = (producer(&heap), consumer(&heap));
    let both = [message(3, 0), message(4, 8)];
    for bytes in &both {
        put(&mut next, bytes).unwrap();
    }
    next.publish();
    assert_eq!(drain(&mut receiver), both);
}

/// Who waits for a short message looks at the mailbox, and keeps a copy: the memory of
/// a message that was found there is not looked at.
#[test]
fn a_short_message_is_found_in_the_mailbox() {
    for length in 0..=SHORT {
        let heap = Heap::new(Geometry::tiny(10, 1, 1));
        let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
        // The first one gets memory.
        put(&mut producer, b"").unwrap();
        producer.publish();
        drain(&mut consumer);
        let bytes = message(7, length);
        assert!(producer.send_short(&bytes), "{length}");
        let place = consumer.next().unwrap().unwrap();
        assert_eq!(consumer.mail(place), Some(&bytes[..]));
        // It is in the ring, too, for whoever takes over.
        assert_eq!(heap.end().read(place.at, place.length), bytes);
        let mut other = self::consumer(&heap);
        assert_eq!(take(&mut other), Some(bytes));
        // Another message at the same place later is not this one.
        consumer.release();
        let again = Place {
            at: place.at,
            length: 1,
        };
        while consumer.mail(again).is_some() {
            put(&mut producer, &message(9, 5)).unwrap();
            producer.publish();
            assert_eq!(drain(&mut consumer), [message(9, 5)]);
        }
    }
}

/// Long messages begin where a line begins, wherever their records are, and keep that
/// place if they turn out to be short.
#[test]
fn long_messages_are_aligned() {
    let heap = Heap::new(Geometry::tiny(14, 1, 1));
    let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
    for number in 0..200 {
        put(&mut producer, &message(number, number as usize % 50)).unwrap();
        let long = message(number, (LONG + 13 * number) as usize);
        let place = producer.reserve(long.len() as u64, true).unwrap();
        assert_eq!(place.at % ALIGNED, 0, "{place:?}");
        producer.fill(place, &long);
        let kept = if number % 2 == 0 { long.len() } else { 3 };
        producer.finish(place, kept as u64);
        producer.publish();

        assert_eq!(
            take(&mut consumer),
            Some(message(number, number as usize % 50))
        );
        let found = consumer.next().unwrap().unwrap();
        assert_eq!((found.at, found.length), (place.at, kept as u64));
        consumer.step_back();
        assert_eq!(take(&mut consumer), Some(long[..kept].to_vec()));
        consumer.release();
    }
}

/// The longest message there can be, of a block of any size, and nothing longer.
#[test]
fn the_longest_message_fits() {
    for block in 6..14 {
        let heap = Heap::new(Geometry::tiny(block, 1, 1));
        let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
        let longest = producer.longest();
        for _ in 0..3 {
            let bytes = message(1, longest as usize);
            if put(&mut producer, &bytes).is_err() {
                // The receiver goes on to where the ring begins.
                assert_eq!(drain(&mut consumer), Vec::<Vec<u8>>::new());
                put(&mut producer, &bytes).unwrap();
            }
            producer.publish();
            assert_eq!(drain(&mut consumer), [bytes]);
        }
        let longer = producer.reserve(longest + 1, true);
        assert!(matches!(longer, Err(Shortage::Full)), "{block}: {longer:?}");
    }
}

/// What is too long for its block goes on where many of its like have room.
#[test]
fn long_messages_have_room() {
    for (length, size) in [(20_000, 1 << 20), (300_000, 2 << 20), (3_000_000, 4 << 20)] {
        let heap = Heap::new(Geometry::tiny(14, 9, 9));
        let mut producer = producer(&heap);
        producer.reserve(length, true).unwrap();
        assert_eq!(heap.shape.size(producer.cursor().block), size, "{length}");
    }
    // As far as it may grow.
    let heap = Heap::new(Geometry::tiny(14, 6, 6));
    let mut producer = producer(&heap);
    producer.reserve(100_000, true).unwrap();
    assert_eq!(producer.cursor().block, 5);
}

/// Where there is memory for a message and not for more, it is sent.
#[test]
fn long_messages_need_no_room() {
    let heap = Heap::new(Geometry::tiny(14, 9, 9));
    let mut producer = producer(&heap);
    heap.most.set(200 << 10);
    producer.reserve(100_000, true).unwrap();
    assert_eq!(producer.cursor().block, 3);
}

/// Blocks of 4, 8, 16 and 32 KiB, of which the last is not kept.
fn half_kept() -> Rc<Heap> {
    Heap::new(Geometry::tiny(12, 4, 3))
}

/// Messages of 1,000 bytes, and one is taken for each that is sent once there is no room.
fn fill(producer: &mut Producer<End>, consumer: &mut Consumer<End>, count: usize) {
    for _ in 0..count {
        while put(producer, &message(0, 1000)).is_err() {
            assert!(take(consumer).is_some());
            consumer.release();
        }
        producer.publish();
    }
}

/// Memory that is there comes before memory that is to be had anew for each lap: also
/// while there is something to read.
#[test]
fn a_kept_block_is_gone_back_to_when_there_is_room() {
    let heap = half_kept();
    let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
    fill(&mut producer, &mut consumer, 40);
    assert_eq!(producer.cursor().block, 3);
    // All but two, which are in the block that is not kept.
    for _ in 2..40 {
        assert!(take(&mut consumer).is_some());
        consumer.release();
    }
    fill(&mut producer, &mut consumer, 20);
    assert_eq!(producer.cursor().block, 2);
}

/// A receiver that is slower than its sender does not make it go to and fro: that would
/// give back a whole block each time, and take it anew.
#[test]
fn a_lane_under_pressure_stays_where_it_is() {
    let heap = half_kept();
    let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
    fill(&mut producer, &mut consumer, 200);
    let discards = |heap: &Heap| heap.order.borrow().matches('d').count();
    let before = discards(&heap);
    fill(&mut producer, &mut consumer, 1000);
    assert_eq!(producer.cursor().block, 3);
    assert_eq!(discards(&heap), before);
}

/// Who has shown something on the way waits for nobody before that is told: a receiver
/// that sleeps makes no room.
#[test]
fn who_waits_a_moment_has_told_all() {
    let heap = Heap::new(Geometry::tiny(20, 3, 3));
    let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
    let bytes = vec![7; 400 << 10];
    // 1 and 2 MiB, and then it would be more than is good for the caches.
    for _ in 0..7 {
        put(&mut producer, &bytes).unwrap();
    }
    assert!(matches!(put(&mut producer, &bytes), Err(Shortage::Untold)));
    assert_eq!(drain(&mut consumer).len(), 7);
    put(&mut producer, &bytes).unwrap();
    assert_eq!(producer.cursor().block, 1);
    assert!(producer.publish());
}

/// A call that must not wait looks no longer for a long message than for a short one.
#[test]
fn only_who_may_wait_is_patient_with_long_messages() {
    let looks = |may_wait| {
        let heap = Heap::new(Geometry::tiny(20, 3, 3));
        let mut producer = producer(&heap);
        let bytes = vec![7; 400 << 10];
        for _ in 0..7 {
            put(&mut producer, &bytes).unwrap();
        }
        producer.publish();
        let before = heap.looks.get();
        producer.reserve(bytes.len() as u64, may_wait).unwrap();
        heap.looks.get() - before
    };
    if cfg!(miri) {
        return;
    }
    let [short, long] = [looks(false), looks(true)];
    assert!((10..100).contains(&short), "{short}");
    // It has six times 64 KiB.
    assert!(long > 5 * short, "{long} and {short}");
}

#[test]
fn what_is_too_long_for_the_mailbox_is_not_sent_so() {
    let heap = Heap::new(Geometry::tiny(10, 1, 1));
    let mut producer = producer(&heap);
    put(&mut producer, b"").unwrap();
    producer.publish();
    assert!(!producer.send_short(&message(1, SHORT + 1)));
    assert!(producer.send_short(&message(1, SHORT)));
}

/// A block of a size that no length of a message divides.
#[test]
fn a_message_that_needs_the_whole_ring_gets_it() {
    for first in 0..6 {
        let heap = Heap::new(Geometry::tiny(6, 1, 1));
        let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
        for number in 0..first {
            put(&mut producer, &message(number, 1)).unwrap_or_default();
            producer.publish();
            drain(&mut consumer);
        }
        let long = message(9, 48);
        for _ in 0..20 {
            let mut tries = 0;
            while put(&mut producer, &long).is_err() {
                assert_eq!(drain(&mut consumer), Vec::<Vec<u8>>::new());
                tries += 1;
                assert!(tries < 3);
            }
            producer.publish();
            assert_eq!(drain(&mut consumer), [&long[..]]);
        }
    }
}

#[test]
fn without_memory_nothing_happens() {
    let heap = Heap::new(shape());
    let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
    heap.most.set(0);
    assert!(matches!(put(&mut producer, b"x"), Err(Shortage::Memory(_))));
    heap.most.set(64 + 128);
    let mut sent = Vec::new();
    let error = loop {
        let bytes = message(sent.len() as u64, 10);
        match put(&mut producer, &bytes) {
            Ok(()) => sent.push(bytes),
            Err(error) => break error,
        }
        producer.publish();
    };
    assert!(matches!(error, Shortage::Memory(_)));
    // In 64 and 128 bytes, 24 each, but for the places of the jumps.
    assert_eq!(sent.len(), 2 + 5);
    heap.most.set(u64::MAX);
    let bytes = message(99, 10);
    put(&mut producer, &bytes).unwrap();
    producer.publish();
    sent.push(bytes);
    assert_eq!(drain(&mut consumer), sent);
}

#[test]
fn a_limit_is_kept() {
    let heap = Heap::new(shape());
    let mut producer = producer(&heap);
    producer.set_limit(300);
    assert_eq!(producer.longest(), 256 - 16);
    while put(&mut producer, &message(0, 20)).is_ok() {}
    assert_eq!(heap.occupied(), 64 + 128 + 256);
}

/// After a flood memory is given back, and a lane that flows on stays where memory
/// is kept: no call a message.
#[test]
fn a_flood_is_given_back() {
    let heap = Heap::new(shape());
    let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
    let mut sent = 0;
    while put(&mut producer, &message(0, 100)).is_ok() {
        producer.publish();
        sent += 1;
    }
    assert!(heap.occupied() > 8192);
    assert_eq!(drain(&mut consumer).len(), sent);
    assert!(
        heap.occupied() <= 64 + 128 + 256 + 8192 / 2,
        "{}",
        heap.occupied()
    );
    let flow = |producer: &mut Producer<End>, consumer: &mut Consumer<End>| {
        put(producer, &message(0, 20)).unwrap();
        producer.publish();
        assert_eq!(drain(consumer).len(), 1);
    };
    for _ in 0..200 {
        flow(&mut producer, &mut consumer);
    }
    assert_eq!(heap.occupied(), 64 + 128 + 256);
    let calls = heap.calls.get();
    for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
        flow(&mut producer, &mut consumer);
    }
    assert_eq!(heap.calls.get(), calls);
}

/// Messages of half a kept block go on in the next one, for which there is only room once.
/// If that is kept as well, there is no call a message.
#[test]
fn half_of_what_is_kept_takes_twice_that() {
    let calls_of = |kept| {
        let heap = Heap::new(Geometry::tiny(6, 8, kept));
        let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
        let mut flow = || {
            put(&mut producer, &[7; 512]).unwrap();
            producer.publish();
            assert_eq!(drain(&mut consumer).len(), 1);
        };
        (0..20).for_each(|_| flow());
        let calls = heap.calls.get();
        (0..100).for_each(|_| flow());
        heap.calls.get() - calls
    };
    // Blocks of up to 1,024 bytes, and of up to 2,048.
    assert!(calls_of(5) >= 100);
    assert_eq!(calls_of(6), 0);
}

/// Once it is told, the sender may write there.
#[test]
fn memory_is_given_back_before_the_sender_is_told() {
    let heap = Heap::new(shape());
    let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
    while put(&mut producer, &message(0, 100)).is_ok() {
        producer.publish();
    }
    let mut given_back = 0;
    while take(&mut consumer).is_some() {
        heap.order.take();
        consumer.release();
        let order = heap.order.take();
        let discards = order.trim_end_matches('h');
        assert_eq!(discards.trim_start_matches('d'), "", "{order}");
        given_back += discards.len();
    }
    assert!(given_back > 1);
}

#[test]
fn a_refusal_is_seen() {
    let heap = Heap::new(shape());
    let (mut producer, consumer) = (producer(&heap), consumer(&heap));
    put(&mut producer, b"x").unwrap();
    consumer.refuse();
    assert_eq!(heap.end().head(), REFUSED);
    let refused = loop {
        if let Err(error) = put(&mut producer, b"x") {
            break error;
        }
    };
    assert!(matches!(refused, Shortage::Refused));
}

/// A receiver that says what cannot be is not believed.
#[test]
fn a_wrong_head_is_found() {
    for (block, position) in [(0, 48), (1, 24), (7, 0), (31, 8), (0, 1 << 61)] {
        let heap = Heap::new(shape());
        let mut producer = producer(&heap);
        put(&mut producer, b"x").unwrap();
        producer.publish();
        heap.end().set_head(Cursor { block, position }.to_word());
        let found = loop {
            if let Err(error) = put(&mut producer, b"x") {
                break error;
            }
        };
        assert!(matches!(found, Shortage::Damaged(_)), "{block} {position}");
    }
}

/// Positions of a lane in which nonsense was left are not gone on with: the next
/// sender would soon be where no cursor is.
#[test]
fn a_lane_is_good_again_wherever_its_tail_was() {
    for blocks in [1, 8] {
        let shape = Geometry::tiny(6, blocks, blocks.min(3));
        for position in [(1 << 62) - 8, (1 << 62) - 64, 1 << 61] {
            let heap = Heap::new(shape);
            let tail = Cursor { block: 0, position }.to_word();
            heap.spoil(tail, REFUSED, &[]);
            Consumer::clear(&heap.end(), &shape);
            let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
            for number in 0..100 {
                let bytes = message(number, 10);
                put(&mut producer, &bytes).unwrap();
                producer.publish();
                assert_eq!(drain(&mut consumer), [bytes]);
            }
        }
    }
}

/// What was shown while it waited for room was shown, whatever came of that: who
/// sleeps is to be woken.
#[test]
fn what_was_shown_on_the_way_is_told_of() {
    let heap = Heap::new(shape());
    let mut producer = producer(&heap);
    heap.most.set(64 + 128 + 256);
    let mut sent = Vec::new();
    while put(&mut producer, &message(sent.len() as u64, 10)).is_ok() {
        sent.push(message(sent.len() as u64, 10));
    }
    assert!(producer.publish());
    assert!(!producer.publish());
    assert_eq!(drain(&mut consumer(&heap)), sent);
}

/// The way to it leads to where the block begins, or to another block.
#[test]
fn who_asks_whether_there_is_more_stays_where_it_is() {
    for (before, length) in [(24, 24), (0, 41), (0, 1000)] {
        let heap = Heap::new(shape());
        let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
        put(&mut producer, &message(1, before)).unwrap();
        producer.publish();
        drain(&mut consumer);
        let (second, third) = (message(2, 8), message(3, length));
        put(&mut producer, &second).unwrap();
        put(&mut producer, &third).unwrap();
        producer.publish();
        assert_eq!(take(&mut consumer), Some(second));
        consumer.release();
        for _ in 0..2 {
            assert_eq!(consumer.has_next(), Ok(true));
        }
        assert_eq!(take(&mut consumer), Some(third));
        assert_eq!(consumer.has_next(), Ok(false));
    }
}

#[test]
fn what_was_seen_and_not_received_yet_is_more() {
    let heap = Heap::new(shape());
    let (mut producer, mut consumer) = (producer(&heap), consumer(&heap));
    for number in 0..2 {
        put(&mut producer, &message(number, 8)).unwrap();
    }
    producer.publish();
    for more in [true, false] {
        assert!(take(&mut consumer).is_some());
        assert_eq!(consumer.has_more(), more);
    }
}

/// It writes message after message into its mailbox while nothing is released: over the
/// first ones.
#[test]
fn a_sender_that_laps_its_receiver_in_the_mailbox_is_found() {
    let heap = Heap::new(Geometry::tiny(6, 1, 64));
    producer(&heap);
    let mut consumer = consumer(&heap);
    let word = |position| Cursor { block: 0, position }.to_word();
    let mut position = 0;
    for _ in 0..5 {
        heap.spoil_mailbox(Stamp::to_word(24, position), [7; MAILBOX]);
        position += Record::takes(RECORD, 24);
        heap.end().set_tail(word(position));
        if !matches!(consumer.next(), Ok(Some(_))) {
            break;
        }
    }
    heap.end().set_tail(word(position + 64));
    assert!(consumer.next().is_err());
}

/// In a block that is four further on, the difference of the cursors is the same but for
/// a bit that a multiplication would lose.
#[test]
fn a_mailbox_is_that_of_the_block_where_the_tail_is() {
    let heap = Heap::new(shape());
    producer(&heap);
    let mut consumer = consumer(&heap);
    heap.spoil_mailbox(Stamp::to_word(8, 0), [7; MAILBOX]);
    let tail = Cursor {
        block: 4,
        position: 16,
    };
    heap.end().set_tail(tail.to_word());
    assert!(consumer.next().is_err());
}
