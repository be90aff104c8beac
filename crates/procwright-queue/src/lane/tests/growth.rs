//! Growth over blocks, limits, and memory given back.

use std::rc::Rc;

use super::heap::{Heap, HeapEnd};
use super::{
    drain, message, put, put_sparse, reader, shape, take, take_sparse, try_put_sparse, writer,
};
use crate::format::{ALIGN_FROM, ALIGNMENT, Geometry};
use crate::lane::{LaneReader, LaneWriter, ReserveError};

/// Long messages begin where a cache line begins, wherever their records are, and keep that
/// place if they turn out to be short.
#[test]
fn long_messages_are_aligned() {
    let heap = Heap::new(Geometry::tiny(14, 1, 1));
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    for number in 0..200 {
        put(&mut writer, &message(number, number as usize % 50)).unwrap();
        let long = message(number, (ALIGN_FROM + 13 * number) as usize);
        let span = writer.reserve(long.len() as u64, true).unwrap();
        assert_eq!(span.at % ALIGNMENT, 0, "{span:?}");
        writer.fill(span, &long);
        let kept = if number % 2 == 0 { long.len() } else { 3 };
        writer.finish(span, kept as u64);
        writer.publish();

        assert_eq!(
            take(&mut reader),
            Some(message(number, number as usize % 50))
        );
        let found = reader.next().unwrap().unwrap();
        assert_eq!((found.at, found.length), (span.at, kept as u64));
        reader.step_back();
        assert_eq!(take(&mut reader), Some(long[..kept].to_vec()));
        reader.release();
    }
}

/// The longest message there can be, of a block of any size, and nothing longer.
#[test]
fn the_longest_message_fits() {
    for block in 6..14 {
        let heap = Heap::new(Geometry::tiny(block, 1, 1));
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        let longest = writer.longest();
        for _ in 0..3 {
            let bytes = message(1, longest as usize);
            if put(&mut writer, &bytes).is_err() {
                // The receiver goes on to where the ring begins.
                assert_eq!(drain(&mut reader), Vec::<Vec<u8>>::new());
                put(&mut writer, &bytes).unwrap();
            }
            writer.publish();
            assert_eq!(drain(&mut reader), [bytes]);
        }
        let longer = writer.reserve(longest + 1, true);
        assert!(
            matches!(longer, Err(ReserveError::Full)),
            "{block}: {longer:?}"
        );
    }
}

/// A message that is too long for its block goes on where a few of its like have room, and
/// when some wait where many have.
#[test]
fn long_messages_have_room() {
    for (length, few, many) in [
        (20_000, 64 << 10, 1 << 20),
        (64 << 10, 256 << 10, 2 << 20),
        (300_000, 1 << 20, 2 << 20),
    ] {
        let heap = Heap::new(Geometry::tiny(14, 11, 11));
        let mut writer = writer(&heap);
        let mut sizes = Vec::new();
        for number in 0..8 {
            put_sparse(&mut writer, number, length);
            sizes.push(heap.shape.size(writer.cursor().block));
        }
        sizes.dedup();
        assert_eq!(sizes, [few, many], "{length}");
    }
    // The lane may grow no further than this.
    let heap = Heap::new(Geometry::tiny(14, 6, 6));
    let mut writer = writer(&heap);
    for number in 0..4 {
        put_sparse(&mut writer, number, 100_000);
    }
    assert_eq!(writer.cursor().block, 5);
}

/// Length of a message for which the smallest block that has room for it has room for one.
const MANY_MIB: u64 = 4 << 20;

/// Blocks of 16 KiB to 16 MiB.
fn for_many_mib() -> Rc<Heap> {
    Heap::new(Geometry::tiny(14, 11, 11))
}

/// Sends messages, and takes each before the next one.
fn send_in_turn(
    writer: &mut LaneWriter<HeapEnd>,
    reader: &mut LaneReader<HeapEnd>,
    count: u64,
    length: u64,
) {
    for number in 0..count {
        put_sparse(writer, number, length);
        writer.publish();
        assert_eq!(take_sparse(reader), Some((number, length)));
        reader.release();
    }
}

/// While the receiver keeps up, a message of MiB lies where the one before did, if that was
/// no shorter.
#[test]
fn one_place_is_in_use_for_messages_of_mib() {
    let heap = for_many_mib();
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    let mut places = Vec::new();
    for number in 0..20 {
        let length = MANY_MIB + 64 * (4 - number / 5);
        put_sparse(&mut writer, number, length);
        writer.publish();
        let span = reader.next().unwrap().unwrap();
        places.push(span.at);
        reader.step_back();
        assert_eq!(take_sparse(&mut reader), Some((number, length)));
        reader.release();
    }
    places.dedup();
    assert_eq!(places.len(), 1, "{places:?}");
    assert!(
        heap.occupied() < MANY_MIB + (2 << 20),
        "{}",
        heap.occupied()
    );
}

/// Behind a message that lies where the one before did, whose skip is unread, the lane grows
/// as behind any other.
#[test]
fn a_lane_grows_from_one_place() {
    for in_turn in 1..5 {
        let heap = for_many_mib();
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        send_in_turn(&mut writer, &mut reader, in_turn, MANY_MIB);
        for number in 0..4 {
            put_sparse(&mut writer, number, MANY_MIB);
        }
        writer.publish();
        for number in 0..4 {
            // Another receiver goes on where the last one was.
            let mut reader = LaneReader::new(heap.end(), heap.shape).unwrap();
            assert_eq!(
                take_sparse(&mut reader),
                Some((number, MANY_MIB)),
                "{in_turn}"
            );
            reader.release();
        }
    }
}

/// A lane that may not grow holds as many messages when the receiver has kept up as before.
#[test]
fn one_place_costs_no_room() {
    for length in [3 << 19, 2 << 20, 3 << 20, MANY_MIB] {
        let room = |in_turn: u64| {
            let heap = Heap::new(Geometry::tiny(23, 1, 1));
            let (mut writer, mut reader) = (writer(&heap), reader(&heap));
            send_in_turn(&mut writer, &mut reader, in_turn, length);
            let sent =
                (0..9).take_while(|number| try_put_sparse(&mut writer, *number, length).is_ok());
            sent.count()
        };
        // A lap's end, where a message may not fit, costs the room of one at most.
        let fresh = room(0);
        for in_turn in 1..9 {
            assert!(room(in_turn) + 1 >= fresh.max(2), "{length}, {in_turn}");
        }
    }
}

/// Room at the place of the message before that is given up: what is sent next has it, be it
/// shorter, longer or many.
#[test]
fn one_place_that_was_given_up_is_used_again() {
    for in_turn in 1..4 {
        for lengths in [
            vec![MANY_MIB],
            vec![MANY_MIB + 64],
            vec![MANY_MIB / 2 - 64; 4],
            vec![8; 40],
        ] {
            let heap = for_many_mib();
            let (mut writer, mut reader) = (writer(&heap), reader(&heap));
            send_in_turn(&mut writer, &mut reader, in_turn, MANY_MIB);
            writer.reserve(MANY_MIB, true).unwrap();
            let sent = (7..).zip(lengths).collect::<Vec<_>>();
            for (number, length) in &sent {
                put_sparse(&mut writer, *number, *length);
            }
            writer.publish();
            for expected in sent {
                assert_eq!(take_sparse(&mut reader), Some(expected), "{in_turn}");
                reader.release();
            }
        }
    }
}

/// A message is sent where there is memory for it and not for more.
#[test]
fn long_messages_need_no_room() {
    let heap = Heap::new(Geometry::tiny(14, 9, 9));
    let mut writer = writer(&heap);
    heap.most.set(200 << 10);
    writer.reserve(100_000, true).unwrap();
    assert_eq!(writer.cursor().block, 3);
}

/// Blocks of 4, 8, 16 and 32 KiB, of which the last is not kept.
fn half_kept() -> Rc<Heap> {
    Heap::new(Geometry::tiny(12, 4, 3))
}

/// Sends messages of 1,000 bytes, and takes one for each once there is no room.
fn fill(writer: &mut LaneWriter<HeapEnd>, reader: &mut LaneReader<HeapEnd>, count: usize) {
    for _ in 0..count {
        while put(writer, &message(0, 1000)).is_err() {
            assert!(take(reader).is_some());
            reader.release();
        }
        writer.publish();
    }
}

/// Memory that is there comes before memory that is to be had anew for each lap: also while
/// there is something to read.
#[test]
fn a_kept_block_is_gone_back_to_when_there_is_room() {
    let heap = half_kept();
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    fill(&mut writer, &mut reader, 40);
    assert_eq!(writer.cursor().block, 3);
    // The last two are in the block that is not kept.
    for _ in 2..40 {
        assert!(take(&mut reader).is_some());
        reader.release();
    }
    fill(&mut writer, &mut reader, 20);
    assert_eq!(writer.cursor().block, 2);
}

/// A receiver that is slower than its sender does not make it go to and fro: that would
/// give back a whole block each time, and take it anew.
#[test]
fn a_lane_under_pressure_stays_where_it_is() {
    let heap = half_kept();
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    fill(&mut writer, &mut reader, 200);
    let discards = |heap: &Heap| heap.order.borrow().matches('d').count();
    let before = discards(&heap);
    fill(&mut writer, &mut reader, 1000);
    assert_eq!(writer.cursor().block, 3);
    assert_eq!(discards(&heap), before);
}

/// The block has a size that no length of a message divides.
#[test]
fn a_message_that_needs_the_whole_ring_gets_it() {
    for first in 0..6 {
        let heap = Heap::new(Geometry::tiny(6, 1, 1));
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        for number in 0..first {
            put(&mut writer, &message(number, 1)).unwrap_or_default();
            writer.publish();
            drain(&mut reader);
        }
        let long = message(9, 48);
        for _ in 0..20 {
            let mut tries = 0;
            while put(&mut writer, &long).is_err() {
                assert_eq!(drain(&mut reader), Vec::<Vec<u8>>::new());
                tries += 1;
                assert!(tries < 3);
            }
            writer.publish();
            assert_eq!(drain(&mut reader), [&long[..]]);
        }
    }
}

#[test]
fn without_memory_nothing_happens() {
    let heap = Heap::new(shape());
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    heap.most.set(0);
    assert!(matches!(
        put(&mut writer, b"x"),
        Err(ReserveError::OutOfMemory(_))
    ));
    heap.most.set(64 + 128);
    let mut sent = Vec::new();
    let error = loop {
        let bytes = message(sent.len() as u64, 10);
        match put(&mut writer, &bytes) {
            Ok(()) => sent.push(bytes),
            Err(error) => break error,
        }
        writer.publish();
    };
    assert!(matches!(error, ReserveError::OutOfMemory(_)));
    // Messages take 24 bytes each in 64 and 128 bytes, less the room for jumps.
    assert_eq!(sent.len(), 2 + 5);
    heap.most.set(u64::MAX);
    let bytes = message(99, 10);
    put(&mut writer, &bytes).unwrap();
    writer.publish();
    sent.push(bytes);
    assert_eq!(drain(&mut reader), sent);
}

#[test]
fn a_limit_is_kept() {
    let heap = Heap::new(shape());
    let mut writer = writer(&heap);
    writer.set_limit(300);
    assert_eq!(writer.longest(), 256 - 16);
    while put(&mut writer, &message(0, 20)).is_ok() {}
    assert_eq!(heap.occupied(), 64 + 128 + 256);
}

/// Memory is given back after a flood, and a lane that flows on stays where memory is kept:
/// no call a message.
#[test]
fn a_flood_is_given_back() {
    let heap = Heap::new(shape());
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    let mut sent = 0;
    while put(&mut writer, &message(0, 100)).is_ok() {
        writer.publish();
        sent += 1;
    }
    assert!(heap.occupied() > 8192);
    assert_eq!(drain(&mut reader).len(), sent);
    assert!(
        heap.occupied() <= 64 + 128 + 256 + 8192 / 2,
        "{}",
        heap.occupied()
    );
    let flow = |writer: &mut LaneWriter<HeapEnd>, reader: &mut LaneReader<HeapEnd>| {
        put(writer, &message(0, 20)).unwrap();
        writer.publish();
        assert_eq!(drain(reader).len(), 1);
    };
    for _ in 0..200 {
        flow(&mut writer, &mut reader);
    }
    assert_eq!(heap.occupied(), 64 + 128 + 256);
    let calls = heap.calls.get();
    for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
        flow(&mut writer, &mut reader);
    }
    assert_eq!(heap.calls.get(), calls);
}

/// Sends so many messages to a receiver that keeps up. The block where the lane is then.
fn keep_up(heap: &Rc<Heap>, count: u64, length: u64) -> u64 {
    let (mut writer, mut reader) = (writer(heap), reader(heap));
    for number in 0..count {
        put_sparse(&mut writer, number, length);
        writer.publish();
        assert_eq!(take_sparse(&mut reader), Some((number, length)));
        reader.release();
    }
    heap.shape.size(writer.cursor().block)
}

/// Blocks of 16 KiB to 32 MiB, of which so many are kept: usually 11, those up to 16 MiB.
fn usual(kept: u32) -> Rc<Heap> {
    Heap::new(Geometry::tiny(14, 12, kept))
}

/// New memory is what makes the first messages slow. A lane whose receiver keeps up takes as
/// much as a few messages need, and gets it by a few calls.
#[test]
fn a_receiver_that_keeps_up_keeps_the_lane_in_few_pages() {
    for (length, most) in [
        (16 << 10, 64 << 10),
        (64 << 10, 256 << 10),
        // A place in each of two blocks.
        (1 << 20, 5 << 20),
        (4 << 20, 10 << 20),
    ] {
        let heap = usual(11);
        keep_up(&heap, 1000, length);
        let (occupied, calls) = (heap.occupied(), heap.calls.get());
        assert!(occupied <= most + (16 << 10), "{length}: {occupied}");
        assert!(calls <= 8, "{length}: {calls}");
    }
}

/// In the long run a place for many is worth its memory: what is written over at once is slow
/// to write.
#[test]
fn a_lane_that_has_sent_much_has_room_for_many() {
    assert_eq!(keep_up(&usual(11), 5000, 64 << 10), 2 << 20);
    // Not where that would not stay, or where there is no memory for it.
    assert_eq!(keep_up(&usual(5), 5000, 64 << 10), 256 << 10);
    let heap = usual(11);
    heap.most.set(300 << 10);
    assert_eq!(keep_up(&heap, 5000, 64 << 10), 256 << 10);
}

/// Messages of half a kept block go on in the next one, for which there is only room once.
/// If that is kept as well, there is no call a message.
#[test]
fn messages_of_half_a_kept_block_need_two_kept_blocks() {
    let calls_of = |kept| {
        let heap = Heap::new(Geometry::tiny(6, 8, kept));
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        let mut flow = || {
            put(&mut writer, &[7; 512]).unwrap();
            writer.publish();
            assert_eq!(drain(&mut reader).len(), 1);
        };
        (0..20).for_each(|_| flow());
        let calls = heap.calls.get();
        (0..100).for_each(|_| flow());
        heap.calls.get() - calls
    };
    // Blocks of up to 1,024 bytes are kept, and then of up to 2,048.
    assert!(calls_of(5) >= 100);
    assert_eq!(calls_of(6), 0);
}

/// Messages that were shown on the way to room were shown, whatever came of that: a
/// receiver that sleeps is to be woken.
#[test]
fn messages_shown_on_the_way_to_room_wake_the_receiver() {
    let heap = Heap::new(shape());
    let mut writer = writer(&heap);
    heap.most.set(64 + 128 + 256);
    let mut sent = Vec::new();
    while put(&mut writer, &message(sent.len() as u64, 10)).is_ok() {
        sent.push(message(sent.len() as u64, 10));
    }
    assert!(writer.publish());
    assert!(!writer.publish());
    assert_eq!(drain(&mut reader(&heap)), sent);
}
