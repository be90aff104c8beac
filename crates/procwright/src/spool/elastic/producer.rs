//! The side that puts bytes in, and never waits.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::state::Finish;
use super::{Event, Shared, spill};
use crate::spool::Overflow;
use crate::spool::budget;
use crate::spool::fifo::BoxError;
use crate::sys::memory::Filler;

/// The producer's side. Dropped without a word it counts as failed.
#[derive(Debug)]
pub(crate) struct Producer {
    shared: Arc<Shared>,
    /// The block that is being filled.
    filler: Option<Filler>,
    /// For what will be dropped.
    scratch: Option<Filler>,
    /// What the latest area is for.
    grant: Grant,
    said_all: bool,
}

#[derive(Clone, Copy, Debug)]
enum Grant {
    None,
    /// At most so many bytes of the filler.
    Keep(usize),
    /// So many of the scratch block.
    Skip(usize),
}

/// What there is room for.
#[derive(Debug)]
pub(crate) enum Space<'a> {
    /// Read into this, not empty, and commit.
    Area(&'a mut [u8]),
    /// No room: the wake-up rings when there is.
    Held,
    /// Nobody wants more.
    Closed,
}

/// The same, for those to whom it matters what becomes of it.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    Kept(&'a mut [u8]),
    /// What is read into this will be dropped.
    Dropped(&'a mut [u8]),
    Held,
    Closed,
}

impl Producer {
    pub(super) fn new(shared: Arc<Shared>) -> Producer {
        Producer {
            shared,
            filler: None,
            scratch: None,
            grant: Grant::None,
            said_all: false,
        }
    }

    /// The memory that the next bytes may be read into. Asking costs nothing and
    /// drops nothing: only [`Producer::commit`] says that bytes have come.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(crate) fn area(&mut self) -> io::Result<Space<'_>> {
        Ok(match self.place(1)? {
            Place::Kept(area) | Place::Dropped(area) => Space::Area(area),
            Place::Held => Space::Held,
            Place::Closed => Space::Closed,
        })
    }

    /// The same with room for `least` bytes in one piece, at most an eighth of the
    /// memory.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(crate) fn place(&mut self, least: usize) -> io::Result<Place<'_>> {
        let mut state = self.shared.lock();
        if !state.wants_more() {
            return Ok(Place::Closed);
        }
        let now = Instant::now();
        let mut room = match state.policy {
            // It makes its own room.
            Overflow::DropOldest { .. } => u64::MAX,
            _ => state.room(now),
        };
        if room < least as u64
            && state.policy.is_lossless()
            && state.has_less()
            && let Some(wake) = &*self.shared.room()
        {
            budget::ring_when_grown(wake);
            room = state.room(now);
        }
        if room < least as u64 {
            state.refuse(now);
            if state.policy.is_lossless() {
                self.grant = Grant::None;
                // What is in the block can go to disk like all else: with a share
                // that became smaller it may be all that there is.
                if let Some(begun) = self.filler.take() {
                    state.pool.give(begun.into_block());
                }
                state.filling = false;
                let start_thread = spill::wanted(&self.shared, &mut state);
                drop(state);
                if start_thread {
                    spill::start(&self.shared);
                }
                return Ok(Place::Held);
            }
            // Whether there is more at all is known when it has been read.
            if self.scratch.is_none() {
                let size = state.block();
                self.scratch = Some(state.pool.take(size)?);
            }
            drop(state);
            let Some(scratch) = &mut self.scratch else {
                return Ok(Place::Closed);
            };
            let area = scratch.spare();
            self.grant = Grant::Skip(area.len());
            return Ok(Place::Dropped(area));
        }
        if let Some(scratch) = self.scratch.take() {
            state.pool.give(scratch.into_block());
        }
        // A block that the consumer has emptied is used from its start again:
        // one that keeps up then sees the same warm memory all the time.
        let usable = |filler: &mut Filler| filler.rewind() || filler.spare().len() >= least;
        if !self.filler.as_mut().is_some_and(usable) {
            if let Some(full) = self.filler.take() {
                state.pool.give(full.into_block());
            }
            let size = state.block();
            self.filler = Some(state.pool.take(size)?);
        }
        state.filling = true;
        drop(state);
        let Some(filler) = &mut self.filler else {
            return Ok(Place::Closed);
        };
        let area = filler.spare();
        let n = area.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.grant = Grant::Keep(n);
        Ok(Place::Kept(&mut area[..n]))
    }

    /// The first `n` bytes of the latest area have been filled.
    ///
    /// # Panics
    /// If the area was smaller.
    pub(crate) fn commit(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        match std::mem::replace(&mut self.grant, Grant::None) {
            Grant::Keep(most) if n <= most => self.keep(n),
            Grant::Skip(most) if n <= most => self.skip(n),
            grant => panic!("{n} bytes committed to {grant:?}"),
        }
    }

    fn keep(&mut self, n: usize) {
        let Some(filler) = &mut self.filler else {
            return;
        };
        let start = filler.filled();
        filler.publish(n);
        let mut state = self.shared.lock();
        let first_drop = state.push(filler.block(), start, start + n, Instant::now());
        self.shared.tell_consumer(&mut state);
        self.shared.tell_watchers(&state);
        let start_thread = spill::wanted(&self.shared, &mut state);
        drop(state);
        if start_thread {
            spill::start(&self.shared);
        }
        if let Some(offset) = first_drop {
            (self.shared.hook)(&Event::Dropping { offset });
        }
    }

    fn skip(&mut self, n: usize) {
        let mut state = self.shared.lock();
        let offset = state.came;
        if matches!(state.policy, Overflow::Fail { .. }) {
            state.overflowed = Some(offset);
            drop(state);
            self.finish_with(Finish::Overflowed(offset));
            (self.shared.hook)(&Event::Overflowed { offset });
            return;
        }
        let first_drop = state.dropped == 0;
        state.skip(n as u64);
        self.shared.tell_consumer(&mut state);
        self.shared.tell_watchers(&state);
        drop(state);
        if first_drop {
            (self.shared.hook)(&Event::Dropping { offset });
        }
    }

    /// Puts a copy of as much of `bytes` as there is room for, and says how much
    /// that was.
    ///
    /// # Errors
    /// When the system has no memory.
    #[cfg(test)]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut put = 0;
        while put < bytes.len() {
            let Space::Area(area) = self.area()? else {
                break;
            };
            let n = area.len().min(bytes.len() - put);
            area[..n].copy_from_slice(&bytes[put..put + n]);
            self.commit(n);
            put += n;
        }
        Ok(put)
    }

    /// The offset at which more came than may be kept, if that has happened.
    pub(crate) fn overflowed(&self) -> Option<u64> {
        self.shared.lock().overflowed
    }

    /// Whether anybody wants more.
    pub(crate) fn is_wanted(&self) -> bool {
        self.shared.lock().wants_more()
    }

    /// Nothing more will come.
    pub(crate) fn end(mut self) {
        self.finish_with(Finish::Whole);
    }

    /// Nothing more will come, because of `error`, which the consumer gets after
    /// all that came before.
    #[allow(dead_code, reason = "for producers that know why they end")]
    pub(crate) fn fail(mut self, error: BoxError) {
        self.finish_with(Finish::Failed(error));
    }

    /// What is there is not to be given out any more.
    pub(crate) fn leave(mut self) {
        self.shared.lock().left = true;
        self.finish_with(Finish::Whole);
    }

    fn finish_with(&mut self, finish: Finish) {
        self.said_all = true;
        let mut state = self.shared.lock();
        // One that was closed had more to say.
        state.whole = matches!(finish, Finish::Whole) && !state.closed && !state.left;
        state.finish.get_or_insert(finish);
        if let Some(filler) = self.filler.take() {
            state.pool.give(filler.into_block());
        }
        if let Some(scratch) = self.scratch.take() {
            state.pool.give(scratch.into_block());
        }
        self.shared.tell_consumer(&mut state);
        drop(state);
        drop(self.shared.room().take());
        self.shared.tell_all();
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if !self.said_all {
            self.finish_with(Finish::Failed("the producer is gone".into()));
        }
    }
}
