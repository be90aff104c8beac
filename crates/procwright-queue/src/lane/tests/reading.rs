//! Messages that the receiver finds, and looks that change nothing.

use super::heap::Heap;
use super::{drain, message, put, reader, shape, take, writer};
use crate::format::{Geometry, MAILBOX_BYTES};
use crate::lane::MessageSpan;

/// A look changes nothing, wherever the way leads.
#[test]
fn a_look_changes_nothing() {
    let heap = Heap::new(shape());
    let (mut sender, mut receiver) = (writer(&heap), reader(&heap));
    // The way leads over the ends of rings, and through several blocks.
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

/// A receiver that waits for a short message looks at the mailbox, and keeps a copy: the
/// memory of a message that was found there is not looked at.
#[test]
fn a_short_message_is_found_in_the_mailbox() {
    for length in 0..=MAILBOX_BYTES {
        let heap = Heap::new(Geometry::tiny(10, 1, 1));
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        // The first message gets memory.
        put(&mut writer, b"").unwrap();
        writer.publish();
        drain(&mut reader);
        let bytes = message(7, length);
        assert!(writer.send_short(&bytes), "{length}");
        let span = reader.next().unwrap().unwrap();
        assert_eq!(reader.mail(span), Some(&bytes[..]));
        // The message is in the ring, too, for a receiver that takes over.
        assert_eq!(heap.end().read(span.at, span.length), bytes);
        let mut other = self::reader(&heap);
        assert_eq!(take(&mut other), Some(bytes));
        // A later message at the same offset is not this one.
        reader.release();
        let again = MessageSpan {
            at: span.at,
            length: 1,
        };
        while reader.mail(again).is_some() {
            put(&mut writer, &message(9, 5)).unwrap();
            writer.publish();
            assert_eq!(drain(&mut reader), [message(9, 5)]);
        }
    }
}

#[test]
fn messages_too_long_for_the_mailbox_do_not_use_it() {
    let heap = Heap::new(Geometry::tiny(10, 1, 1));
    let mut writer = writer(&heap);
    put(&mut writer, b"").unwrap();
    writer.publish();
    assert!(!writer.send_short(&message(1, MAILBOX_BYTES + 1)));
    assert!(writer.send_short(&message(1, MAILBOX_BYTES)));
}

/// The way to the next message leads to where the block begins, or to another block.
#[test]
fn has_next_keeps_the_position() {
    for (before, length) in [(24, 24), (0, 41), (0, 1000)] {
        let heap = Heap::new(shape());
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        put(&mut writer, &message(1, before)).unwrap();
        writer.publish();
        drain(&mut reader);
        let (second, third) = (message(2, 8), message(3, length));
        put(&mut writer, &second).unwrap();
        put(&mut writer, &third).unwrap();
        writer.publish();
        assert_eq!(take(&mut reader), Some(second));
        reader.release();
        for _ in 0..2 {
            assert_eq!(reader.has_next(), Ok(true));
        }
        assert_eq!(take(&mut reader), Some(third));
        assert_eq!(reader.has_next(), Ok(false));
    }
}

#[test]
fn messages_seen_and_not_received_count_as_more() {
    let heap = Heap::new(shape());
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    for number in 0..2 {
        put(&mut writer, &message(number, 8)).unwrap();
    }
    writer.publish();
    for more in [true, false] {
        assert!(take(&mut reader).is_some());
        assert_eq!(reader.has_more(), more);
    }
}
