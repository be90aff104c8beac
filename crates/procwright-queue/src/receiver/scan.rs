//! The next message: which lane is read, and for how long.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Receiver;
use super::open_lane::{OpenLane, QUOTA};
use crate::error::Error;
use crate::lane::MessageSpan;
use procwright_os::time::Deadline;

/// Offset of no message.
const NOWHERE: u64 = u64::MAX;

/// Number of looks after which the system is asked for senders.
const ATTEND_EVERY: u32 = 4096;

impl Receiver {
    /// Returns whether there is neither a message nor anything else to do, for callers that
    /// look all the time.
    #[inline]
    pub(super) fn is_quiet(&mut self) -> bool {
        let is_idle = |lane: &OpenLane| lane.left_as.is_none() && !lane.has_more();
        let is_quiet = self.looks + 1 < ATTEND_EVERY
            && !self.is_announced
            && !self.has_watcher
            && self.queue.is_here()
            && !self.token.is_marked()
            && self.claimed == Some(self.claims.load(Ordering::Relaxed))
            && !self.links.is_empty()
            && self.lanes.iter().all(is_idle)
            && !self.is_attention_due();
        // Any other look is counted by the call that follows.
        self.looks += u32::from(is_quiet);
        is_quiet
    }

    /// Returns whether there is a message now, or damage. It stays there.
    pub(super) fn has_next(&mut self) -> Result<bool, Error> {
        self.read_claims()?;
        let mut at = 0;
        while at < self.lanes.len() {
            let lane = &mut self.lanes[at];
            if !lane.is_refused && lane.reader.has_next().unwrap_or(true) {
                return Ok(true);
            }
            // A call that receives does this as well when it finds nothing.
            lane.release();
            if !lane.is_finished() || !self.reclaim(at) {
                at += 1;
            }
        }
        Ok(false)
    }

    /// The next message of the current lane, if that has one and its quota is not used up.
    /// Else the caller does everything else that is due: once in a quota, and whenever the
    /// lane is empty.
    #[inline]
    pub(super) fn next_in_current(&mut self) -> Option<MessageSpan> {
        let (at, length) = self.next_in_registers();
        (at != NOWHERE).then_some(MessageSpan { at, length })
    }

    /// The next message of the current lane, in two registers. An `Option` of both goes
    /// through memory, in words, and comes back as a vector, for which a processor waits
    /// longer than for all the rest.
    #[inline(never)]
    fn next_in_registers(&mut self) -> (u64, u64) {
        match self.next_inlined() {
            Some(span) => (span.at, span.length),
            None => (NOWHERE, 0),
        }
    }

    #[inline(always)]
    fn next_inlined(&mut self) -> Option<MessageSpan> {
        if self.is_announced || self.quota == 0 || !self.queue.is_here() {
            return None;
        }
        let lane = self.lanes.get_mut(self.current)?;
        let span = lane.reader.next_fast()?;
        self.quota -= 1;
        self.looks += 1;
        Some(span)
    }

    /// The next message, if there is one now.
    #[inline]
    pub(super) fn next_now(&mut self) -> Result<Option<MessageSpan>, Error> {
        self.check()?;
        self.token.renew_if_marked();
        self.looks += 1;
        if self.looks >= ATTEND_EVERY {
            self.attend_links(Deadline::at(Instant::now()))?;
        }
        self.scan_lanes()
    }

    #[inline]
    pub(super) fn scan_lanes(&mut self) -> Result<Option<MessageSpan>, Error> {
        // Acquire: the states that were changed before this count are read after it.
        let claims = self.claims.load(Ordering::Acquire);
        if self.claimed != Some(claims) {
            self.read_claims()?;
            self.claimed = Some(claims);
        }
        let mut looked = 0;
        while looked <= self.lanes.len() {
            looked += 1;
            if self.quota == 0 || self.current >= self.lanes.len() {
                self.current = if self.current + 1 < self.lanes.len() {
                    self.current + 1
                } else {
                    0
                };
                self.quota = QUOTA;
            }
            let Some(lane) = self.lanes.get_mut(self.current) else {
                return Ok(None);
            };
            match lane.next() {
                Ok(Some(span)) => {
                    self.quota -= 1;
                    return Ok(Some(span));
                }
                Ok(None) => self.quota = 0,
                Err(damage) => return Err(self.refuse(damage)),
            }
            if self.lanes[self.current].is_finished() && self.reclaim(self.current) {
                // The last lane has taken this one's place in the list, so a count does not
                // tell any more which lanes were looked at, and a receiver that is about to
                // sleep must not leave one out: all are looked at once more, from here.
                self.quota = QUOTA;
                looked = 0;
            }
        }
        Ok(None)
    }
}
