//! The lane against a model of a queue, and against any bytes.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::heap::Heap;
use super::{drain, message, put, reader, send, shape, take, take_sparse, try_put_sparse, writer};
use crate::format::{
    Cursor, Geometry, MAILBOX_BYTES, MAILBOX_WORDS, RECORD_SIZE, Record, RecordKind,
};
use crate::lane::{LaneReader, LaneWriter, ReserveError};

#[derive(Clone, Debug)]
enum Step {
    /// Sends messages of these lengths, shown at once.
    Send(Vec<usize>),
    /// Sends one message, in the quickest way.
    SendOne(usize),
    /// Receives so many messages, and releases them.
    Receive(usize),
    /// Asks whether there is a message, and receives nothing.
    Ask,
    /// Takes the next message and puts it back.
    PutBack,
    /// The receiver dies, and another goes on.
    TakeOver,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![4 => 0..40usize, 2 => 0..500usize, 1 => 0..8121usize];
    let short = 0..=MAILBOX_BYTES + 8;
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
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        let mut model: VecDeque<Vec<u8>> = VecDeque::new();
        let mut number = 0;
        for step in steps {
            match step {
                Step::Send(lengths) => {
                    for length in lengths {
                        number += 1;
                        let bytes = message(number, length);
                        match put(&mut writer, &bytes) {
                            Ok(()) => model.push_back(bytes),
                            Err(ReserveError::Full) if model.is_empty() => {
                                // The receiver may have to go on to where the block begins,
                                // and the sender after it.
                                let mut fits = false;
                                for _ in 0..2 {
                                    prop_assert_eq!(take(&mut reader), None);
                                    reader.release();
                                    fits = fits || put(&mut writer, &bytes).is_ok();
                                }
                                prop_assert!(fits);
                                model.push_back(bytes);
                            }
                            Err(ReserveError::Full) => {}
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                    writer.publish();
                }
                Step::SendOne(length) => {
                    number += 1;
                    let bytes = message(number, length);
                    if send(&mut writer, &bytes).is_ok() {
                        model.push_back(bytes);
                    }
                }
                Step::Receive(most) => {
                    for _ in 0..most {
                        let Some(bytes) = take(&mut reader) else { break };
                        prop_assert_eq!(Some(bytes), model.pop_front());
                    }
                    reader.release();
                }
                Step::Ask => {
                    prop_assert_eq!(reader.has_next(), Ok(!model.is_empty()));
                }
                Step::PutBack => {
                    if let Some(span) = reader.next().unwrap() {
                        reader.step_back();
                        prop_assert!(reader.mail(span).is_none());
                    }
                }
                Step::TakeOver => {
                    // Messages that were taken and not released come again.
                    reader = LaneReader::new(heap.end(), heap.shape).unwrap();
                    let again: Vec<_> = std::iter::from_fn(|| take(&mut reader)).collect();
                    prop_assert!(again.ends_with(model.make_contiguous()));
                    reader.release();
                    model.clear();
                }
            }
        }
        let rest: VecDeque<_> = drain(&mut reader).into();
        prop_assert_eq!(rest, model);
        // Memory that was used for a flood is free, but for one step.
        prop_assert!(heap.occupied() <= 64 + 128 + 256 + 8192);
        // Any message fits into a lane that is empty, after two looks at most.
        let long = message(0, writer.longest() as usize);
        let fits = (0..3).any(|_| {
            let fits = put(&mut writer, &long).is_ok();
            fits || { take(&mut reader).is_some() || { reader.release(); false } }
        });
        prop_assert!(fits);
        writer.publish();
        prop_assert_eq!(take(&mut reader), Some(long));
    }

    /// Any bytes in a lane lead to no panic, no endless loop, and nothing beyond the
    /// window.
    #[test]
    fn any_bytes_may_lie_in_a_lane(
        tail in cursor(),
        head in cursor(),
        bytes in spoiled(),
        stamp in stamp(),
        mail in any::<[u64; MAILBOX_WORDS]>(),
    ) {
        let heap = Heap::new(Geometry::tiny(6, 3, 1));
        heap.spoil(tail, head, &bytes);
        heap.spoil_mailbox(stamp, mail);
        let Ok(mut reader) = LaneReader::new(heap.end(), heap.shape) else { return Ok(()) };
        let mut read = 0;
        while let Ok(Some(span)) = reader.next() {
            prop_assert!(span.at + span.length <= heap.shape.window());
            if let Some(mail) = reader.mail(span) {
                prop_assert_eq!(mail.len() as u64, span.length);
            }
            read += Record::size(RECORD_SIZE, span.length);
            reader.release();
        }
        prop_assert!(read <= 2 * heap.shape.window(), "{read}");
        drop(LaneWriter::new(heap.end(), heap.shape));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    /// Blocks whose memory is provided part by part, of the size that they have in use.
    #[test]
    fn a_lane_of_long_messages_is_a_queue(
        steps in prop::collection::vec((long(), 0..4usize, 0..6usize, any::<bool>()), 1..40),
        waiting in 0..3usize,
    ) {
        let heap = Heap::new(Geometry::tiny(14, 10, 9));
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        let mut model = VecDeque::new();
        let mut number = 0;
        for (length, sent, received, in_turn) in steps {
            for _ in 0..sent {
                if in_turn {
                    // The receiver keeps up.
                    writer.publish();
                    while let Some(expected) = model.pop_front() {
                        prop_assert_eq!(take_sparse(&mut reader), Some(expected));
                    }
                    reader.release();
                }
                number += 1;
                match try_put_sparse(&mut writer, number, length) {
                    Ok(()) => model.push_back((number, length)),
                    Err(ReserveError::Full) if model.is_empty() => {
                        // The receiver has to go on to where the block begins.
                        let fits = (0..2).any(|_| {
                            assert_eq!(take_sparse(&mut reader), None);
                            reader.release();
                            try_put_sparse(&mut writer, number, length).is_ok()
                        });
                        prop_assert!(fits);
                        model.push_back((number, length));
                    }
                    Err(ReserveError::Full | ReserveError::WakeFirst) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
            writer.publish();
            // Some messages wait all the time, and now and then all are received.
            let most = match received {
                5 => model.len(),
                _ => model.len().saturating_sub(waiting),
            };
            for _ in 0..most {
                prop_assert_eq!(take_sparse(&mut reader), model.pop_front());
                reader.release();
            }
        }
        while let Some(expected) = model.pop_front() {
            prop_assert_eq!(take_sparse(&mut reader), Some(expected));
        }
        prop_assert_eq!(take_sparse(&mut reader), None);
    }
}

/// Lengths around parts of a block, of which many end where a part does.
fn long() -> impl Strategy<Value = u64> {
    let near = (10..23u32, 0..24u64).prop_map(|(power, less)| (1 << power) - 8 * less);
    prop_oneof![near, (128..400_000u64).prop_map(|words| 8 * words)]
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
        (0..80u32).prop_map(|length| Some(RecordKind::Message(length))),
        (0..80u32).prop_map(|length| Some(RecordKind::Aligned(length))),
        (0..80u32).prop_map(|length| Some(RecordKind::Spaced(length))),
        Just(Some(RecordKind::Skip)),
        (0..4u32).prop_map(|block| Some(RecordKind::Jump(block))),
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
