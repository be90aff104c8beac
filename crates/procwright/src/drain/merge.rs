//! Two streams into one queue, in the order in which they are read.
//!
//! What one read gave is a record: a header in front of the bytes, written in
//! place into the queue's own memory. So order, disk, back-pressure and figures
//! are the queue's own, and nothing is copied.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::store::Room;
use crate::spool::elastic::{Place, Producer};

/// What stands in front of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// 0 for stdout, 1 for stderr.
    pub(crate) stream: usize,
    /// The bytes of the record, without this.
    pub(crate) length: usize,
    /// When they were read.
    pub(crate) at: SystemTime,
}

impl Header {
    pub(crate) const SIZE: usize = 16;

    fn to_bytes(self) -> [u8; Header::SIZE] {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        // A read is never longer than a block.
        let length = u32::try_from(self.length).unwrap_or(u32::MAX);
        let mut bytes = [0; Header::SIZE];
        bytes[..8].copy_from_slice(&nanos.to_ne_bytes());
        bytes[8..12].copy_from_slice(&length.to_ne_bytes());
        bytes[12] = u8::from(self.stream == 1);
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Header::SIZE]) -> Header {
        let (mut nanos, mut length) = ([0; 8], [0; 4]);
        nanos.copy_from_slice(&bytes[..8]);
        length.copy_from_slice(&bytes[8..12]);
        let nanos = u64::from_ne_bytes(nanos);
        Header {
            stream: usize::from(bytes[12]),
            length: u32::from_ne_bytes(length) as usize,
            at: SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos),
        }
    }
}

/// The room that a record gets at least: less is left unused at the end of a
/// block, and not taken where a policy drops.
const LEAST: usize = 512;

#[derive(Debug)]
struct Merge {
    /// None once both have ended, or one has failed.
    producer: Option<Producer>,
    open: usize,
    /// The bytes of all headers.
    headers: Arc<AtomicU64>,
}

/// What came of one of the two, which the queue does not tell apart.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    bytes: AtomicU64,
    dropped: AtomicU64,
    ended: AtomicBool,
}

impl Tally {
    /// Bytes that were read from the pipe.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Those of them that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Whether its end was seen while somebody wanted to know.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Where one of the two goes.
#[derive(Debug)]
pub(crate) struct Half {
    merge: Arc<Mutex<Merge>>,
    stream: usize,
    tally: Arc<Tally>,
    /// It has said how it ended.
    said: bool,
}

impl Half {
    /// The two ways into the queue of `producer`, and a counter of the bytes of
    /// headers that went in. The drains of both are driven by
    /// the same thread, or their order would be that of chance.
    pub(crate) fn both(producer: Producer) -> ([Half; 2], Arc<AtomicU64>) {
        let headers = Arc::<AtomicU64>::default();
        let merge = Arc::new(Mutex::new(Merge {
            producer: Some(producer),
            open: 2,
            headers: Arc::clone(&headers),
        }));
        let halves = [0, 1].map(|stream| Half {
            merge: Arc::clone(&merge),
            stream,
            tally: Arc::default(),
            said: false,
        });
        (halves, headers)
    }

    pub(crate) fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    fn merge(&self) -> MutexGuard<'_, Merge> {
        self.merge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn room(&self) -> io::Result<Room> {
        let mut merge = self.merge();
        let space = merge.producer.as_mut().map(|one| one.place(LEAST));
        Ok(match space.transpose()? {
            Some(Place::Kept(_) | Place::Dropped(_)) => Room::Some,
            Some(Place::Held) => Room::None,
            Some(Place::Closed) | None => Room::Unwanted,
        })
    }

    pub(super) fn read_from(&self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        let mut merge = self.merge();
        let merge = &mut *merge;
        let Some(producer) = &mut merge.producer else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let n = match producer.place(LEAST)? {
            Place::Kept(area) => {
                let (head, room) = area.split_at_mut(Header::SIZE);
                let max = max.min(room.len());
                let n = rustix::io::read(fd, &mut room[..max])?;
                if n == 0 {
                    return Ok(0);
                }
                let header = Header {
                    stream: self.stream,
                    length: n,
                    at: SystemTime::now(),
                };
                head.copy_from_slice(&header.to_bytes());
                let size = Header::SIZE as u64;
                merge.headers.fetch_add(size, Ordering::Relaxed);
                self.tally.bytes.fetch_add(n as u64, Ordering::Relaxed);
                producer.commit(Header::SIZE + n);
                n
            }
            Place::Dropped(area) => {
                // Dropped as a whole, so that only bytes of the stream are counted.
                let max = max.min(area.len());
                let n = rustix::io::read(fd, &mut area[..max])?;
                producer.commit(n);
                // What is too much was not taken in.
                if producer.overflowed().is_none() {
                    self.tally.bytes.fetch_add(n as u64, Ordering::Relaxed);
                    self.tally.dropped.fetch_add(n as u64, Ordering::Relaxed);
                }
                n
            }
            // Was asked before.
            Place::Held | Place::Closed => return Err(io::ErrorKind::WouldBlock.into()),
        };
        Ok(n)
    }

    pub(super) fn end(&mut self) {
        if std::mem::replace(&mut self.said, true) {
            return;
        }
        let mut merge = self.merge();
        merge.open -= 1;
        // One that is closed had more to say.
        let is_wanted = merge.producer.as_ref().is_some_and(Producer::is_wanted);
        self.tally.ended.store(is_wanted, Ordering::Relaxed);
        if merge.open == 0
            && let Some(producer) = merge.producer.take()
        {
            drop(merge);
            producer.end();
        }
    }

    pub(super) fn fail(&mut self, error: io::Error) {
        self.said = true;
        let producer = self.merge().producer.take();
        if let Some(producer) = producer {
            producer.fail(error.into());
        }
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        if !self.said {
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
        for stream in [0, 1] {
            let at = SystemTime::UNIX_EPOCH + Duration::new(1_800_000_000, 123_456_789);
            let header = Header {
                stream,
                length: 262_128,
                at,
            };
            assert_eq!(Header::from_bytes(header.to_bytes()), header);
        }
    }
}
