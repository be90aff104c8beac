//! Ends that die after any of their stores.

use super::heap::{Heap, HeapEnd};
use super::{drain, message, put, reader, send, shape, take, writer};
use crate::format::{Cursor, Stamp};
use crate::lane::{LaneMemory, LaneReader, LaneWriter};

/// Lengths of messages, and how many are taken after each, that go through everything:
/// laps, growth over several blocks, long ones, none at all, back again.
fn story() -> Vec<(usize, usize)> {
    let mut story = Vec::new();
    for round in 0..3 {
        // Less is taken than sent at first.
        story.extend([(3, 1), (0, 1), (17, 0), (40, 0), (50, 1), (300, 0), (8, 2)]);
        story.extend([(1500 + round, 0), (9, 0), (2500, 1), (24, usize::MAX)]);
        story.extend((0..40).map(|i| (i % 30, usize::from(i % 3 != 0) * 2)));
    }
    story
}

/// Goes through the story until an end is dead. Messages that the receiver was given are
/// added to `got`; those that are sure to be visible are returned.
fn tell(
    writer: &mut LaneWriter<HeapEnd>,
    reader: &mut LaneReader<HeapEnd>,
    got: &mut Vec<Vec<u8>>,
) -> Vec<Vec<u8>> {
    let mut shown = Vec::new();
    for (number, (length, takes)) in story().into_iter().enumerate() {
        let bytes = message(number as u64, length);
        let quick = number % 5 != 0 && number % 3 != 0 && writer.send_short(&bytes);
        let mut finished = quick || put(writer, &bytes).is_ok();
        // A second message is shown by the same store.
        let other = message(1000 + number as u64, length / 2);
        let both = finished && number % 5 == 0 && put(writer, &other).is_ok();
        if writer.memory().is_dead() && !quick {
            break;
        }
        writer.publish();
        if writer.memory().is_dead() {
            // The store of the tail may have been the last one, or the first that was not
            // made.
            let seen = Cursor::from_word(writer.memory().tail());
            finished &= seen == writer.cursor();
        }
        shown.extend(finished.then_some(bytes));
        shown.extend((finished && both).then_some(other));
        if writer.memory().is_dead() {
            break;
        }
        for _ in 0..takes {
            let Some(bytes) = take(reader) else { break };
            got.push(bytes);
        }
        reader.release();
        if reader.memory().is_dead() {
            break;
        }
    }
    shown
}

/// The sender dies after each of its stores: exactly what it has shown arrives, once, and
/// the lane serves the next sender.
#[test]
fn a_sender_may_die_anywhere() {
    let mut stores = 0;
    loop {
        let heap = Heap::new(shape());
        let end = heap.end().dies_after(stores);
        let mut writer = LaneWriter::new(end, heap.shape).unwrap();
        let mut reader = reader(&heap);
        let mut got = Vec::new();
        let shown = tell(&mut writer, &mut reader, &mut got);
        got.extend(drain(&mut reader));
        assert_eq!(got, shown, "after {stores} stores");
        let is_over = !writer.memory().is_dead();
        drop(writer);

        LaneReader::clear(reader.memory(), &heap.shape);
        assert_eq!(heap.occupied(), 0);
        let mut next = self::writer(&heap);
        let mut reader = self::reader(&heap);
        put(&mut next, b"next").unwrap();
        next.publish();
        assert_eq!(drain(&mut reader), [b"next"]);
        if is_over {
            break;
        }
        stores += if cfg!(miri) { 97 } else { 1 };
    }
    assert!(stores > 1000 || cfg!(miri), "{stores}");
}

/// The receiver dies after each of its stores: the next one gets all that the first was not
/// given, and again what it had not released.
#[test]
fn a_receiver_may_die_anywhere() {
    let mut stores = 0;
    loop {
        let heap = Heap::new(shape());
        let mut writer = writer(&heap);
        let end = heap.end().dies_after(stores);
        let mut reader = LaneReader::new(end, heap.shape).unwrap();
        let mut got = Vec::new();
        let shown = tell(&mut writer, &mut reader, &mut got);
        let is_over = !reader.memory().is_dead();
        drop(reader);

        let mut next = self::reader(&heap);
        let rest = drain(&mut next);
        assert!(shown.ends_with(&rest), "after {stores} stores");
        assert!(
            got.len() + rest.len() >= shown.len(),
            "after {stores} stores"
        );
        put(&mut writer, b"more").unwrap();
        writer.publish();
        assert_eq!(drain(&mut next), [b"more"]);
        if is_over {
            break;
        }
        stores += if cfg!(miri) { 7 } else { 1 };
    }
    assert!(stores > 30 || cfg!(miri), "{stores}");
}

/// A mailbox that has a message that was never shown is not taken for that of the next
/// sender's message, which begins at the same position.
#[test]
fn a_dead_senders_mailbox_is_not_believed() {
    let heap = Heap::new(shape());
    let mut receiver = reader(&heap);
    let end = heap.end();
    let mut dying = LaneWriter::new(end.clone(), heap.shape).unwrap();
    // The lane goes on in the middle of the second block, where a first one can begin.
    send(&mut dying, &message(1, 56)).unwrap();
    drain(&mut receiver);
    assert_eq!(Cursor::from_word(end.tail()).position, 128 + 64);
    // The stores of the stamp, and of two words in mailbox and ring.
    let _ = end.dies_after(5);
    assert!(dying.send_short(&message(2, 16)));
    assert_eq!(heap.end().stamp(), Stamp::to_word(16, 192));

    LaneReader::clear(receiver.memory(), &heap.shape);
    let (mut next, mut receiver) = (writer(&heap), reader(&heap));
    let both = [message(3, 0), message(4, 8)];
    for bytes in &both {
        put(&mut next, bytes).unwrap();
    }
    next.publish();
    assert_eq!(drain(&mut receiver), both);
}

/// Once the sender is told, it may write there.
#[test]
fn memory_is_given_back_before_the_sender_is_told() {
    let heap = Heap::new(shape());
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    while put(&mut writer, &message(0, 100)).is_ok() {
        writer.publish();
    }
    let mut given_back = 0;
    while take(&mut reader).is_some() {
        heap.order.take();
        reader.release();
        let order = heap.order.take();
        let discards = order.trim_end_matches('h');
        assert_eq!(discards.trim_start_matches('d'), "", "{order}");
        given_back += discards.len();
    }
    assert!(given_back > 1);
}
