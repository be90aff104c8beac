//! Tests of a lane in ordinary memory.

mod damage;
mod deaths;
mod growth;
mod heap;
mod model;
mod reading;
mod waiting;

use std::rc::Rc;

use super::{LaneReader, LaneWriter, MessageSpan, ReserveError};
use crate::format::Geometry;
use heap::{Heap, HeapEnd};

/// Eight blocks of 64 bytes to 8 KiB, of which those up to 256 are kept.
fn shape() -> Geometry {
    Geometry::tiny(6, 8, 3)
}

fn writer(heap: &Rc<Heap>) -> LaneWriter<HeapEnd> {
    let mut writer = LaneWriter::new(heap.end(), heap.shape).unwrap();
    if !cfg!(miri) {
        writer.enable_spinning();
    }
    writer
}

fn reader(heap: &Rc<Heap>) -> LaneReader<HeapEnd> {
    LaneReader::new(heap.end(), heap.shape).unwrap()
}

/// A message that is unlike all others.
fn message(number: u64, length: usize) -> Vec<u8> {
    let bytes = number.to_le_bytes().into_iter().cycle();
    bytes
        .map(|byte| byte ^ number as u8 ^ 0x5a)
        .take(length)
        .collect()
}

/// Sends a message in the quickest way.
fn send(writer: &mut LaneWriter<HeapEnd>, bytes: &[u8]) -> Result<(), ReserveError> {
    if !writer.send_short(bytes) {
        put(writer, bytes)?;
        writer.publish();
    }
    Ok(())
}

/// Finishes a message, and does not show it.
fn put(writer: &mut LaneWriter<HeapEnd>, bytes: &[u8]) -> Result<(), ReserveError> {
    let span = writer.reserve(bytes.len() as u64, true)?;
    writer.fill(span, bytes);
    writer.finish(span, span.length);
    Ok(())
}

/// Finishes a long message of which only the beginning and the end are written.
fn put_sparse(writer: &mut LaneWriter<HeapEnd>, number: u64, length: u64) {
    let mut done = try_put_sparse(writer, number, length);
    while matches!(done, Err(ReserveError::WakeFirst)) {
        done = try_put_sparse(writer, number, length);
    }
    done.unwrap();
}

fn try_put_sparse(
    writer: &mut LaneWriter<HeapEnd>,
    number: u64,
    length: u64,
) -> Result<(), ReserveError> {
    let span = writer.reserve(length, true)?;
    for at in [span.at, span.at + length - 8] {
        writer.fill(MessageSpan { at, length: 8 }, &number.to_le_bytes());
    }
    writer.finish(span, length);
    Ok(())
}

/// The number and the length of the next message, both of whose ends say so.
fn take_sparse(reader: &mut LaneReader<HeapEnd>) -> Option<(u64, u64)> {
    let span = reader.next().unwrap()?;
    let ends = [span.at, span.at + span.length - 8];
    let [first, last] =
        ends.map(|at| u64::from_le_bytes(reader.memory().read(at, 8).try_into().unwrap()));
    assert_eq!(first, last);
    Some((first, span.length))
}

fn take(reader: &mut LaneReader<HeapEnd>) -> Option<Vec<u8>> {
    let span = reader.next().unwrap()?;
    let bytes = reader.memory().read(span.at, span.length);
    if let Some(mail) = reader.mail(span) {
        assert_eq!(mail, bytes);
    }
    Some(bytes)
}

/// Receives and releases all that is there.
fn drain(reader: &mut LaneReader<HeapEnd>) -> Vec<Vec<u8>> {
    let all = std::iter::from_fn(|| take(reader)).collect();
    reader.release();
    all
}
