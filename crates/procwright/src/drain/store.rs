//! The store: the place of what a drain reads.

use std::io;
use std::os::fd::BorrowedFd;

use super::kept::Kept;
use super::merge::MergeInput;
use super::room::StoreRoom;
use super::scratch::Scratch;
use crate::spool::elastic::{ElasticProducer, Space};
use crate::spool::{HeadAndTail, Memory};

/// The place of what a drain reads.
#[derive(Debug)]
pub(crate) enum Store<M> {
    /// Memory for all bytes.
    Whole(Kept<M>),
    /// Memory for both ends.
    HeadAndTail(HeadAndTail),
    /// A queue to the reader of the stream. None once it has ended.
    Elastic(Option<ElasticProducer>),
    /// A queue to the reader of both streams.
    Merged(MergeInput),
    /// No memory: the bytes are looked at by taps only.
    Nothing(Scratch),
}

impl<M: Memory> Store<M> {
    pub(crate) fn whole() -> Store<M> {
        Store::Whole(Kept::new())
    }

    pub(crate) fn ends(limit: u64) -> Store<M> {
        Store::HeadAndTail(HeadAndTail::new(limit))
    }

    pub(crate) fn nothing() -> Store<M> {
        Store::Nothing(Scratch::default())
    }

    /// True if what is read is kept here, up to some limit.
    pub(super) fn keeps(&self) -> bool {
        matches!(self, Store::Whole(_) | Store::HeadAndTail(_))
    }

    /// True if what is read goes to the reader of this stream.
    pub(super) fn has_reader(&self) -> bool {
        matches!(self, Store::Elastic(_))
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
            Store::Nothing(scratch) => scratch.read_from(fd, max)?,
        };
        if n > 0 {
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
            Store::Nothing(scratch) => scratch.latest(n),
        }
    }

    /// The kept bytes in one piece, and where in them others were dropped.
    pub(super) fn into_kept(self) -> (io::Result<M>, Option<u64>) {
        match self {
            Store::Whole(kept) => (Ok(kept.finish()), None),
            Store::HeadAndTail(ends) => {
                let mut kept = Kept::new();
                let pushed = ends.pieces().iter().try_for_each(|piece| kept.push(piece));
                (pushed.map(|()| kept.finish()), Some(ends.kept().0))
            }
            Store::Nothing(_) | Store::Elastic(_) | Store::Merged(_) => (Ok(M::new()), None),
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
