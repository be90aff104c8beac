//! Nonsense that one end leaves for the other.

use super::heap::Heap;
use super::{drain, message, put, reader, shape, writer};
use crate::format::{Cursor, Geometry, MAILBOX_WORDS, RECORD_SIZE, REFUSED, Record, Stamp};
use crate::lane::{LaneMemory, LaneReader, ReserveError};

#[test]
fn a_refusal_is_seen() {
    let heap = Heap::new(shape());
    let (mut writer, reader) = (writer(&heap), reader(&heap));
    put(&mut writer, b"x").unwrap();
    reader.refuse();
    assert_eq!(heap.end().head(), REFUSED);
    let refused = loop {
        if let Err(error) = put(&mut writer, b"x") {
            break error;
        }
    };
    assert!(matches!(refused, ReserveError::Refused));
}

/// A head that no receiver can have reached is not believed.
#[test]
fn a_wrong_head_is_found() {
    for (block, position) in [(0, 48), (1, 24), (7, 0), (31, 8), (0, 1 << 61)] {
        let heap = Heap::new(shape());
        let mut writer = writer(&heap);
        put(&mut writer, b"x").unwrap();
        writer.publish();
        heap.end().set_head(Cursor { block, position }.to_word());
        let found = loop {
            if let Err(error) = put(&mut writer, b"x") {
                break error;
            }
        };
        assert!(
            matches!(found, ReserveError::Damaged(_)),
            "{block} {position}"
        );
    }
}

/// Positions of a lane in which nonsense was left are not gone on with: the next sender
/// would soon be where no cursor is.
#[test]
fn a_lane_is_good_again_wherever_its_tail_was() {
    for blocks in [1, 8] {
        let shape = Geometry::tiny(6, blocks, blocks.min(3));
        for position in [(1 << 62) - 8, (1 << 62) - 64, 1 << 61] {
            let heap = Heap::new(shape);
            let tail = Cursor { block: 0, position }.to_word();
            heap.spoil(tail, REFUSED, &[]);
            LaneReader::clear(&heap.end(), &shape);
            let (mut writer, mut reader) = (writer(&heap), reader(&heap));
            for number in 0..100 {
                let bytes = message(number, 10);
                put(&mut writer, &bytes).unwrap();
                writer.publish();
                assert_eq!(drain(&mut reader), [bytes]);
            }
        }
    }
}

/// The sender writes message after message into its mailbox while nothing is released: over
/// the first ones.
#[test]
fn a_sender_that_laps_its_receiver_in_the_mailbox_is_found() {
    let heap = Heap::new(Geometry::tiny(6, 1, 64));
    writer(&heap);
    let mut reader = reader(&heap);
    let word = |position| Cursor { block: 0, position }.to_word();
    let mut position = 0;
    for _ in 0..5 {
        heap.spoil_mailbox(Stamp::to_word(24, position), [7; MAILBOX_WORDS]);
        position += Record::size(RECORD_SIZE, 24);
        heap.end().set_tail(word(position));
        if !matches!(reader.next(), Ok(Some(_))) {
            break;
        }
    }
    heap.end().set_tail(word(position + 64));
    assert!(reader.next().is_err());
}

/// In a block that is four further on, the difference of the cursors is the same but for a
/// bit that a multiplication would lose.
#[test]
fn a_mailbox_is_that_of_the_block_where_the_tail_is() {
    let heap = Heap::new(shape());
    writer(&heap);
    let mut reader = reader(&heap);
    heap.spoil_mailbox(Stamp::to_word(8, 0), [7; MAILBOX_WORDS]);
    let tail = Cursor {
        block: 4,
        position: 16,
    };
    heap.end().set_tail(tail.to_word());
    assert!(reader.next().is_err());
}
