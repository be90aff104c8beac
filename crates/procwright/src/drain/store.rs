//! The store: the place of what a drain reads.

use std::io;
use std::os::fd::BorrowedFd;

use super::kept::Kept;
use super::merge::MergeInput;
use super::room::StoreRoom;
use crate::spool::elastic::{ElasticProducer, Space};
use crate::spool::{HeadAndTail, Memory};
use procwright_os::memory;

/// The size of the buffer for what is not kept.
const SCRATCH: usize = 256 * 1024;

/// The place of what a drain reads.
#[derive(Debug)]
pub(crate) enum Store<M> {
    /// Memory for all bytes.
    Whole(Kept<M>),
    /// Memory for the first `limit` bytes. The rest is counted.
    Capped {
        kept: Kept<M>,
        length: u64,
        limit: u64,
        seen: u64,
        scratch: Vec<u8>,
    },
    /// Memory for both ends.
    HeadAndTail(HeadAndTail),
    /// A queue to the reader of the stream. None once it has ended.
    Elastic(Option<ElasticProducer>),
    /// A queue to the reader of both streams.
    Merged(MergeInput),
    /// No memory: the bytes are looked at by taps only. More than `limit` of them
    /// are too many.
    Nothing {
        seen: u64,
        limit: Option<u64>,
        scratch: Vec<u8>,
    },
}

impl<M: Memory> Store<M> {
    pub(crate) fn whole() -> Store<M> {
        Store::Whole(Kept::new())
    }

    pub(crate) fn capped(limit: u64) -> Store<M> {
        Store::Capped {
            kept: Kept::new(),
            length: 0,
            limit,
            seen: 0,
            scratch: Vec::new(),
        }
    }

    pub(crate) fn ends(limit: u64) -> Store<M> {
        Store::HeadAndTail(HeadAndTail::new(limit))
    }

    pub(crate) fn nothing(limit: Option<u64>) -> Store<M> {
        Store::Nothing {
            seen: 0,
            limit,
            scratch: Vec::new(),
        }
    }

    /// True if what is read is kept, up to some limit.
    pub(super) fn keeps(&self) -> bool {
        !matches!(self, Store::Nothing { .. })
    }

    /// Reads once. `seen` is called with what came, if anything did.
    pub(super) fn read_from(
        &mut self,
        fd: BorrowedFd<'_>,
        max: usize,
        seen: impl FnOnce(&[u8]),
    ) -> io::Result<usize> {
        let n = match self {
            Store::Whole(memory) => memory.read_from(fd, max)?,
            Store::HeadAndTail(ends) => ends.read_from(fd, max)?,
            // What lies there is its reader's once it is committed.
            Store::Elastic(producer) => return read_into_queue(producer, fd, max, seen),
            Store::Merged(half) => return half.read_from(fd, max, seen),
            Store::Nothing { scratch, .. } => discard(scratch, fd, max)?,
            Store::Capped {
                kept,
                length,
                limit,
                scratch,
                ..
            } => {
                let room = usize::try_from(*limit - *length).unwrap_or(usize::MAX);
                match room {
                    0 => discard(scratch, fd, max)?,
                    room => {
                        let n = kept.read_from(fd, max.min(room))?;
                        *length += n as u64;
                        n
                    }
                }
            }
        };
        if n > 0 {
            if let Store::Capped { seen, .. } | Store::Nothing { seen, .. } = self {
                *seen += n as u64;
            }
            seen(self.latest(n));
        }
        Ok(n)
    }

    /// The room for more.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(super) fn room(&mut self) -> io::Result<StoreRoom> {
        let producer = match self {
            Store::Elastic(producer) => producer,
            Store::Merged(half) => return half.room(),
            _ => return Ok(StoreRoom::Some),
        };
        match producer.as_mut().map(ElasticProducer::area).transpose()? {
            Some(Space::Area(_)) => Ok(StoreRoom::Some),
            Some(Space::Held) => Ok(StoreRoom::None),
            Some(Space::Closed) | None => Ok(StoreRoom::Unwanted),
        }
    }

    /// Ends the store: all has been read.
    pub(super) fn end(&mut self) {
        match self {
            Store::Elastic(producer) => {
                if let Some(producer) = producer.take() {
                    producer.end();
                }
            }
            Store::Merged(half) => half.end(),
            _ => {}
        }
    }

    /// Ends the store: no more can be read.
    pub(super) fn fail(&mut self, error: io::Error) {
        match self {
            Store::Elastic(producer) => {
                if let Some(producer) = producer.take() {
                    producer.fail(error.into());
                }
            }
            Store::Merged(half) => half.fail(error),
            _ => {}
        }
    }

    /// The bytes of the latest read, which returned `n`.
    fn latest(&self, n: usize) -> &[u8] {
        match self {
            Store::Whole(memory) => last(memory.as_bytes(), n),
            // They tell of a read while it is in their hands.
            Store::Elastic(_) | Store::Merged(_) => &[],
            Store::HeadAndTail(ends) => ends.latest(n),
            Store::Nothing { scratch, .. } => last(scratch, n),
            Store::Capped {
                length,
                seen,
                scratch,
                ..
            } if seen > length => last(scratch, n),
            Store::Capped { kept, .. } => last(kept.as_bytes(), n),
        }
    }

    /// The kept bytes in one piece, and where in them others were dropped.
    pub(super) fn into_kept(self) -> (io::Result<M>, Option<u64>) {
        match self {
            Store::Whole(kept) => (Ok(kept.finish()), None),
            Store::Capped { kept, length, .. } => (Ok(kept.finish()), Some(length)),
            Store::HeadAndTail(ends) => {
                let mut kept = Kept::new();
                let pushed = ends.pieces().iter().try_for_each(|piece| kept.push(piece));
                (pushed.map(|()| kept.finish()), Some(ends.kept().0))
            }
            Store::Nothing { .. } | Store::Elastic(_) | Store::Merged(_) => (Ok(M::new()), None),
        }
    }

    pub(super) fn over_limit(&self) -> bool {
        match self {
            Store::Capped { length, seen, .. } => seen > length,
            Store::Nothing { seen, limit, .. } => limit.is_some_and(|limit| *seen > limit),
            Store::Whole(_) | Store::HeadAndTail(_) | Store::Elastic(_) | Store::Merged(_) => false,
        }
    }
}

fn read_into_queue(
    producer: &mut Option<ElasticProducer>,
    fd: BorrowedFd<'_>,
    max: usize,
    seen: impl FnOnce(&[u8]),
) -> io::Result<usize> {
    let Some(producer) = producer else {
        return Err(io::ErrorKind::WouldBlock.into());
    };
    // `room` was asked before.
    let Space::Area(area) = producer.area()? else {
        return Err(io::ErrorKind::WouldBlock.into());
    };
    let max = max.min(area.len());
    let n = rustix::io::read(fd, &mut area[..max])?;
    if n > 0 {
        seen(&area[..n]);
    }
    producer.commit(n);
    Ok(n)
}

fn last(bytes: &[u8], n: usize) -> &[u8] {
    &bytes[bytes.len() - n..]
}

fn discard(scratch: &mut Vec<u8>, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
    if scratch.capacity() == 0 {
        scratch
            .try_reserve_exact(SCRATCH)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    }
    scratch.clear();
    memory::read_into_spare(fd, scratch, max)
}
