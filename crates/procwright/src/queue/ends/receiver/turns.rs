//! Whose turn it is: the lanes, and the next message in them.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::queue::bell::space;
use crate::queue::ends::memory::LaneMemory;
use crate::queue::lane::{Consumer, Damage, Place};
use crate::queue::{Error, Receiver};
use crate::sys::robust::wake;
use crate::time::Deadline;

/// A lane that somebody has, or had.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) consumer: Consumer<LaneMemory>,
    /// It has no sender any more, but maybe messages.
    pub(super) is_left: bool,
    /// It was damaged: it is kept until its sender is gone.
    pub(super) is_refused: bool,
}

/// So many messages of a lane before it is the next one's turn.
pub(super) const TURN: u32 = 256;

/// No place.
const NOWHERE: u64 = u64::MAX;

/// After so many looks the system is asked who is there.
const LOOKS: u32 = 4096;

impl Receiver {
    /// Whether there is nothing, and nothing else to be seen to: for who looks all the
    /// time.
    #[inline]
    pub(super) fn is_quiet(&mut self) -> bool {
        let is_idle = |lane: &Lane| !lane.is_left && !lane.has_more();
        let is_quiet = self.looks + 1 < LOOKS
            && !self.is_armed
            && !self.is_watched
            && self.ground.is_here()
            && !self.life.is_lost()
            && self.claimed == Some(self.claims.load(Ordering::Relaxed))
            && !self.guests.is_empty()
            && self.lanes.iter().all(is_idle)
            && !self.is_unattended();
        // Else it is counted with the look that follows.
        self.looks += u32::from(is_quiet);
        is_quiet
    }

    /// Whether there is a message now, or damage. It stays there.
    pub(super) fn has_next(&mut self) -> Result<bool, Error> {
        self.look_at_claims()?;
        let mut at = 0;
        while at < self.lanes.len() {
            let lane = &mut self.lanes[at];
            if !lane.is_refused && lane.consumer.has_next().unwrap_or(true) {
                return Ok(true);
            }
            // What a look that finds nothing does as well.
            lane.release();
            if lane.is_over() {
                let lane = self.lanes.swap_remove(at);
                self.reclaim(&lane);
            } else {
                at += 1;
            }
        }
        Ok(false)
    }

    /// The next message of the lane whose turn it is, if nothing else is to be seen
    /// to: once in a turn, and when the lane is empty, all else is.
    #[inline]
    pub(super) fn next_of_turn(&mut self) -> Option<Place> {
        let (at, length) = self.next_in_two();
        (at != NOWHERE).then_some(Place { at, length })
    }

    /// The same, in two registers: an `Option` of both goes through memory, in words,
    /// and comes back as a vector, for which a processor waits longer than for all
    /// the rest.
    #[inline(never)]
    fn next_in_two(&mut self) -> (u64, u64) {
        match self.next_inlined() {
            Some(place) => (place.at, place.length),
            None => (NOWHERE, 0),
        }
    }

    #[inline(always)]
    fn next_inlined(&mut self) -> Option<Place> {
        if self.is_armed || self.left == 0 || !self.ground.is_here() {
            return None;
        }
        let lane = self.lanes.get_mut(self.turn)?;
        let place = lane.consumer.next_at_once()?;
        self.left -= 1;
        self.looks += 1;
        Some(place)
    }

    /// The next message, if there is one now.
    #[inline]
    pub(super) fn look(&mut self) -> Result<Option<Place>, Error> {
        self.check()?;
        self.life.keep();
        self.looks += 1;
        if self.looks >= LOOKS {
            self.attend(Deadline::at(Instant::now()))?;
        }
        self.look_at_lanes()
    }

    #[inline]
    pub(super) fn look_at_lanes(&mut self) -> Result<Option<Place>, Error> {
        let claims = self.claims.load(Ordering::Acquire);
        if self.claimed != Some(claims) {
            self.look_at_claims()?;
            self.claimed = Some(claims);
        }
        let mut looked = 0;
        while looked <= self.lanes.len() {
            looked += 1;
            if self.left == 0 || self.turn >= self.lanes.len() {
                self.turn = if self.turn + 1 < self.lanes.len() {
                    self.turn + 1
                } else {
                    0
                };
                self.left = TURN;
            }
            let Some(lane) = self.lanes.get_mut(self.turn) else {
                return Ok(None);
            };
            match lane.next() {
                Ok(Some(place)) => {
                    self.left -= 1;
                    return Ok(Some(place));
                }
                Ok(None) => self.left = 0,
                Err(damage) => return Err(self.refuse(damage)),
            }
            if self.lanes[self.turn].is_over() {
                let lane = self.lanes.swap_remove(self.turn);
                self.reclaim(&lane);
                // The last one is here now. Which ones were looked at cannot be told
                // by counting any more, and who is about to sleep must not leave one
                // out: all of them once more, from here.
                self.left = TURN;
                looked = 0;
            }
        }
        Ok(None)
    }
}

impl Lane {
    #[inline]
    fn next(&mut self) -> Result<Option<Place>, Damage> {
        if self.is_refused {
            return Ok(None);
        }
        let next = self.consumer.next();
        if matches!(next, Ok(None)) {
            // It may have gone on all the same.
            self.release();
        }
        next
    }

    #[inline]
    pub(super) fn release(&mut self) {
        if !self.is_refused && self.consumer.release() {
            let space = self.consumer.memory().space();
            if space::made(space) {
                wake(space);
            }
        }
    }

    /// Whether it is worth to look.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        !self.is_refused && self.consumer.has_more()
    }

    /// Whether nobody will send or receive here any more.
    fn is_over(&self) -> bool {
        self.is_left && (self.is_refused || self.consumer.is_at_end())
    }
}
