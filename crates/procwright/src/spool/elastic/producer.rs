//! The side that puts bytes in, and never waits.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::event::Event;
use super::shared::ElasticShared;
use super::sides::Finish;
use super::spill_thread;
use crate::error::BoxError;
use crate::spool::budget;
use crate::spool::overflow::Overflow;
use procwright_os::memory::Filler;

/// The producer's side. One that is dropped before it has said how it ended counts as
/// failed.
#[derive(Debug)]
pub(crate) struct ElasticProducer {
    shared: Arc<ElasticShared>,
    /// The block that is being filled.
    filler: Option<Filler>,
    /// The block for bytes that will be dropped.
    scratch: Option<Filler>,
    /// The fate of the latest area.
    area_use: AreaUse,
    has_finished: bool,
}

#[derive(Clone, Copy, Debug)]
enum AreaUse {
    None,
    /// The most bytes of the filler that may be committed.
    Keep(usize),
    /// The size of the scratch block.
    Skip(usize),
}

/// Room for the next bytes.
#[derive(Debug)]
pub(crate) enum Space<'a> {
    /// Read into this, not empty, and commit.
    Area(&'a mut [u8]),
    /// No room: the wake-up rings when there is.
    Held,
    /// Nothing more is wanted.
    Closed,
}

/// Room for the next bytes, and what will become of them.
#[derive(Debug)]
pub(crate) enum Destination<'a> {
    Kept(&'a mut [u8]),
    /// An area whose bytes will be dropped.
    Dropped(&'a mut [u8]),
    Held,
    Closed,
}

impl ElasticProducer {
    pub(super) fn new(shared: Arc<ElasticShared>) -> ElasticProducer {
        ElasticProducer {
            shared,
            filler: None,
            scratch: None,
            area_use: AreaUse::None,
            has_finished: false,
        }
    }

    /// The memory that the next bytes may be read into. Asking drops no bytes: only
    /// [`ElasticProducer::commit`] says that bytes have come. It takes the lock, and may
    /// give memory back or start the spill thread.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(crate) fn area(&mut self) -> io::Result<Space<'_>> {
        Ok(match self.destination(1)? {
            Destination::Kept(area) | Destination::Dropped(area) => Space::Area(area),
            Destination::Held => Space::Held,
            Destination::Closed => Space::Closed,
        })
    }

    /// The memory that the next bytes may be read into, with room for `least` bytes in
    /// one piece, at most an eighth of the memory, and what will become of them.
    ///
    /// # Errors
    /// When the system has no memory.
    pub(crate) fn destination(&mut self, least: usize) -> io::Result<Destination<'_>> {
        let mut state = self.shared.lock();
        if !state.wants_more() {
            return Ok(Destination::Closed);
        }
        let now = Instant::now();
        let mut room = match state.policy {
            // The oldest bytes make room.
            Overflow::DropOldest { .. } => u64::MAX,
            _ => state.room(now),
        };
        if room < least as u64
            && state.policy.is_lossless()
            && state.storage.is_limited_by_share()
            && let Some(wake) = &*self.shared.room()
        {
            budget::ring_when_grown(wake);
            room = state.room(now);
        }
        if room < least as u64 {
            state.refuse(now);
            if state.policy.is_lossless() {
                self.area_use = AreaUse::None;
                // The bytes of this block can go to disk like all others: with a share
                // that became smaller they may be all that there is.
                if let Some(begun) = self.filler.take() {
                    state.storage.pool.give(begun.into_block());
                }
                state.producer.is_filling = false;
                let start_thread = spill_thread::wake_if_needed(&self.shared, &mut state);
                drop(state);
                if start_thread {
                    spill_thread::start(&self.shared);
                }
                return Ok(Destination::Held);
            }
            // A read has to tell whether there is more at all.
            if self.scratch.is_none() {
                let size = state.storage.next_block_size();
                self.scratch = Some(state.storage.pool.take(size)?);
            }
            drop(state);
            let Some(scratch) = &mut self.scratch else {
                return Ok(Destination::Closed);
            };
            let area = scratch.spare();
            self.area_use = AreaUse::Skip(area.len());
            return Ok(Destination::Dropped(area));
        }
        if let Some(scratch) = self.scratch.take() {
            state.storage.pool.give(scratch.into_block());
        }
        // A block that the consumer has emptied is used from its start again:
        // one that keeps up then sees the same warm memory all the time.
        let usable = |filler: &mut Filler| filler.rewind() || filler.spare().len() >= least;
        if !self.filler.as_mut().is_some_and(usable) {
            if let Some(full) = self.filler.take() {
                state.storage.pool.give(full.into_block());
            }
            let size = state.storage.next_block_size();
            self.filler = Some(state.storage.pool.take(size)?);
        }
        state.producer.is_filling = true;
        drop(state);
        let Some(filler) = &mut self.filler else {
            return Ok(Destination::Closed);
        };
        let area = filler.spare();
        let n = area.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.area_use = AreaUse::Keep(n);
        Ok(Destination::Kept(&mut area[..n]))
    }

    /// The first `n` bytes of the latest area have been filled.
    ///
    /// # Panics
    /// If the area was smaller.
    pub(crate) fn commit(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        match std::mem::replace(&mut self.area_use, AreaUse::None) {
            AreaUse::Keep(most) if n <= most => self.keep(n),
            AreaUse::Skip(most) if n <= most => self.skip(n),
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
        self.shared.notify_consumer(&mut state);
        self.shared.notify_monitors(&state);
        let start_thread = spill_thread::wake_if_needed(&self.shared, &mut state);
        drop(state);
        if start_thread {
            spill_thread::start(&self.shared);
        }
        if let Some(offset) = first_drop {
            (self.shared.hook)(&Event::Dropping { offset });
        }
    }

    fn skip(&mut self, n: usize) {
        let mut state = self.shared.lock();
        let offset = state.accounts.came;
        if matches!(state.policy, Overflow::Fail { .. }) {
            state.producer.overflowed = Some(offset);
            drop(state);
            self.finish_with(Finish::Overflowed(offset));
            (self.shared.hook)(&Event::Overflowed { offset });
            return;
        }
        let first_drop = state.accounts.dropped == 0;
        state.push_gap(n as u64);
        self.shared.notify_consumer(&mut state);
        self.shared.notify_monitors(&state);
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
        self.shared.lock().producer.overflowed
    }

    /// True while more is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.shared.lock().wants_more()
    }

    /// Nothing more will come.
    pub(crate) fn end(mut self) {
        self.finish_with(Finish::Whole);
    }

    /// Nothing more will come, because of `error`, which the consumer gets after
    /// all that came before.
    pub(crate) fn fail(mut self, error: BoxError) {
        self.finish_with(Finish::Failed(error));
    }

    /// Ends the queue without giving out what is there.
    pub(crate) fn leave(mut self) {
        self.shared.lock().producer.has_abandoned = true;
        self.finish_with(Finish::Whole);
    }

    fn finish_with(&mut self, finish: Finish) {
        self.has_finished = true;
        let mut state = self.shared.lock();
        // A producer whose consumer has closed had more to say.
        state.producer.is_whole = matches!(finish, Finish::Whole) && !state.is_abandoned();
        state.producer.finish.get_or_insert(finish);
        if let Some(filler) = self.filler.take() {
            state.storage.pool.give(filler.into_block());
        }
        if let Some(scratch) = self.scratch.take() {
            state.storage.pool.give(scratch.into_block());
        }
        self.shared.notify_consumer(&mut state);
        drop(state);
        drop(self.shared.room().take());
        self.shared.notify_all();
    }
}

impl Drop for ElasticProducer {
    fn drop(&mut self) {
        if !self.has_finished {
            self.finish_with(Finish::Failed("the producer is gone".into()));
        }
    }
}
