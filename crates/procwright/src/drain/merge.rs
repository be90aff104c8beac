//! Two streams into one queue, in the order in which they are read.
//!
//! The bytes of one read are a record: a header in front of the bytes, written in
//! place into the queue's own memory. So order, disk, back-pressure and figures
//! are the queue's own, and nothing is copied.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use super::room::StoreRoom;
use super::segment::are_empty;
use crate::spool::elastic::{Destination, ElasticProducer};
use crate::std_stream::{PerStream, StdStream};
use procwright_os::fork::CloseOnFork;
use procwright_os::sync::{Mutex, MutexGuard};

/// The header in front of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) stream: StdStream,
    /// The number of bytes behind the header.
    pub(crate) length: usize,
    /// The time at which they were read.
    pub(crate) at: SystemTime,
    /// True if both pipes were found empty between the record before and this one, so that
    /// all before was written before.
    pub(crate) after_pause: bool,
}

impl RecordHeader {
    pub(crate) const SIZE: usize = 16;

    fn to_bytes(self) -> [u8; RecordHeader::SIZE] {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        // A read is never longer than a block.
        let length = u32::try_from(self.length).unwrap_or(u32::MAX);
        let mut bytes = [0; RecordHeader::SIZE];
        bytes[..8].copy_from_slice(&nanos.to_ne_bytes());
        bytes[8..12].copy_from_slice(&length.to_ne_bytes());
        bytes[12] = u8::from(self.stream == StdStream::Stderr);
        bytes[13] = u8::from(self.after_pause);
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; RecordHeader::SIZE]) -> RecordHeader {
        let (mut nanos, mut length) = ([0; 8], [0; 4]);
        nanos.copy_from_slice(&bytes[..8]);
        length.copy_from_slice(&bytes[8..12]);
        let nanos = u64::from_ne_bytes(nanos);
        RecordHeader {
            stream: match bytes[12] {
                0 => StdStream::Stdout,
                _ => StdStream::Stderr,
            },
            length: u32::from_ne_bytes(length) as usize,
            at: SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos),
            after_pause: bytes[13] != 0,
        }
    }
}

/// The room that a record gets at least: less is left unused at the end of a
/// block, and not taken where a policy drops.
const LEAST: usize = 512;

#[derive(Debug)]
struct MergeState {
    /// The queue. None once both streams have ended, or one has failed.
    producer: Option<ElasticProducer>,
    open: usize,
    /// The pipes, each as long as it is read; none before they are known.
    pipes: Option<PerStream<Weak<CloseOnFork>>>,
    /// Both pipes were found empty after the latest record.
    is_pause: bool,
    /// The bytes of all headers.
    headers: Arc<AtomicU64>,
}

/// Figures of one of the two streams, which the queue does not tell apart.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    bytes: AtomicU64,
    dropped: AtomicU64,
    ended: AtomicBool,
}

impl Tally {
    /// Bytes that were read from the pipe.
    pub(crate) fn bytes(&self) -> u64 {
        // Relaxed, here and below: figures. No memory is reached by way of them.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of those that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// True once the end of the stream was seen, unless the queue was closed before.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// The way of one stream into the queue of both.
#[derive(Debug)]
pub(crate) struct MergeInput {
    merge: Arc<Mutex<MergeState>>,
    stream: StdStream,
    tally: Arc<Tally>,
    /// The end of this stream was told.
    has_ended: bool,
}

impl MergeInput {
    /// The two ways into the queue of `producer`, and what is to be done with both. The drains
    /// of both are driven by the same thread, or their order would be that of chance.
    pub(crate) fn pair(producer: ElasticProducer) -> (PerStream<MergeInput>, MergeHandle) {
        let headers = Arc::<AtomicU64>::default();
        let merge = Arc::new(Mutex::new(MergeState {
            producer: Some(producer),
            open: 2,
            pipes: None,
            is_pause: false,
            headers: Arc::clone(&headers),
        }));
        let halves = PerStream::from_fn(|stream| MergeInput {
            merge: Arc::clone(&merge),
            stream,
            tally: Arc::default(),
            has_ended: false,
        });
        (halves, MergeHandle { merge, headers })
    }

    pub(crate) fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    fn merge(&self) -> MutexGuard<'_, MergeState> {
        self.merge.lock()
    }

    pub(super) fn room(&self) -> io::Result<StoreRoom> {
        let mut merge = self.merge();
        let space = merge.producer.as_mut().map(|one| one.destination(LEAST));
        Ok(match space.transpose()? {
            Some(Destination::Kept(_) | Destination::Dropped(_)) => StoreRoom::Some,
            Some(Destination::Held) => StoreRoom::None,
            Some(Destination::Closed) | None => StoreRoom::Unwanted,
        })
    }

    /// Reads once. `seen` is called with what came, if anything did.
    pub(super) fn read_from(
        &self,
        fd: BorrowedFd<'_>,
        max: usize,
        seen: impl FnOnce(&[u8]),
    ) -> io::Result<usize> {
        let mut merge = self.merge();
        let merge = &mut *merge;
        let Some(producer) = &mut merge.producer else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let n = match producer.destination(LEAST)? {
            Destination::Kept(area) => {
                let (head, room) = area.split_at_mut(RecordHeader::SIZE);
                let max = max.min(room.len());
                let n = rustix::io::read(fd, &mut room[..max])?;
                if n == 0 {
                    return Ok(0);
                }
                // Looked at before the record is told of: who waits for that knows that the look was
                // made.
                let is_pause = is_pause(merge.pipes.as_ref());
                let after_pause = std::mem::replace(&mut merge.is_pause, is_pause);
                seen(&room[..n]);
                let header = RecordHeader {
                    stream: self.stream,
                    length: n,
                    at: SystemTime::now(),
                    after_pause,
                };
                head.copy_from_slice(&header.to_bytes());
                let size = RecordHeader::SIZE as u64;
                merge.headers.fetch_add(size, Ordering::Relaxed);
                self.tally.bytes.fetch_add(n as u64, Ordering::Relaxed);
                producer.commit(RecordHeader::SIZE + n);
                n
            }
            Destination::Dropped(area) => {
                // Dropped as a whole, so that only bytes of the stream are counted.
                let max = max.min(area.len());
                let n = rustix::io::read(fd, &mut area[..max])?;
                merge.is_pause = merge.is_pause || is_pause(merge.pipes.as_ref());
                if n > 0 {
                    seen(&area[..n]);
                }
                producer.commit(n);
                // Bytes that are too many were not taken in.
                if producer.overflowed().is_none() {
                    self.tally.bytes.fetch_add(n as u64, Ordering::Relaxed);
                    self.tally.dropped.fetch_add(n as u64, Ordering::Relaxed);
                }
                n
            }
            // `room` was asked before.
            Destination::Held | Destination::Closed => return Err(io::ErrorKind::WouldBlock.into()),
        };
        Ok(n)
    }

    pub(super) fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let mut merge = self.merge();
        merge.open -= 1;
        // A stream whose queue is closed had more to say.
        let is_wanted = merge
            .producer
            .as_ref()
            .is_some_and(ElasticProducer::is_wanted);
        self.tally.ended.store(is_wanted, Ordering::Relaxed);
        if merge.open == 0
            && let Some(producer) = merge.producer.take()
        {
            drop(merge);
            producer.end();
        }
    }

    pub(super) fn fail(&mut self, error: io::Error) {
        self.has_ended = true;
        let producer = self.merge().producer.take();
        if let Some(producer) = producer {
            producer.fail(error.into());
        }
    }
}

/// True if both pipes are empty now.
fn is_pause(pipes: Option<&PerStream<Weak<CloseOnFork>>>) -> bool {
    let Some(pipes) = pipes else {
        return false;
    };
    // By one that is not read any more nothing comes.
    let open: Vec<_> = pipes.values().filter_map(Weak::upgrade).collect();
    let fds: io::Result<Vec<_>> = open.iter().map(|pipe| pipe.get()).collect();
    fds.is_ok_and(|fds| are_empty(fds.into_iter()))
}

/// What is to be done with both streams of a queue.
#[derive(Debug)]
pub(crate) struct MergeHandle {
    merge: Arc<Mutex<MergeState>>,
    headers: Arc<AtomicU64>,
}

impl MergeHandle {
    /// Says by which pipes the streams come, before either is read: both are looked at for
    /// the moments at which neither has anything.
    pub(crate) fn know_pipes(&self, pipes: PerStream<Weak<CloseOnFork>>) {
        self.merge.lock().pipes = Some(pipes);
    }

    /// Counter of the bytes of headers that went in.
    pub(crate) fn headers(self) -> Arc<AtomicU64> {
        self.headers
    }
}

impl Drop for MergeInput {
    fn drop(&mut self) {
        if !self.has_ended {
            // The queue tells that its producer is gone.
            let producer = self.merge().producer.take();
            drop(producer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_was() {
        for (stream, after_pause) in StdStream::BOTH.into_iter().zip([true, false]) {
            let at = SystemTime::UNIX_EPOCH + Duration::new(1_800_000_000, 123_456_789);
            let header = RecordHeader {
                stream,
                length: 262_128,
                at,
                after_pause,
            };
            assert_eq!(RecordHeader::from_bytes(header.to_bytes()), header);
        }
    }
}
