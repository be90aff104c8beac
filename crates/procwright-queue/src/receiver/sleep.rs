//! How a receiver waits: it spins for as long as that has been worth it lately, and then
//! sleeps, on a futex word or on its descriptor.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::open_lane::OpenLane;
use super::{MAX_SPINS, MIN_SPINS, Receiver};
use crate::error::Error;
use crate::lane::MessageSpan;
use crate::wakeup::Asleep;
use procwright_os::shared_memory;
use procwright_os::time::Deadline;

/// Longest sleep on the word. Most sleeps are short, and to end one by the word costs less.
/// But the link alone tells that a sender was killed just when it was about to wake this
/// receiver.
const NAP: Duration = Duration::from_millis(10);

/// Number of looks without a pause.
const TIGHT_SPINS: u32 = 400;

impl Receiver {
    /// Sleeps until there is a message.
    pub(super) fn wait(&mut self, deadline: Deadline) -> Result<MessageSpan, Error> {
        self.end_sleep();
        loop {
            if let Some(span) = self.next_now()? {
                return Ok(span);
            }
            if let Some(span) = self.spin()? {
                return Ok(span);
            }
            if self.has_no_senders()? {
                // Messages that the last senders left are found by this last look.
                return self.scan_lanes()?.ok_or(Error::Closed);
            }
            let now = Instant::now();
            if deadline.reached(now) {
                return Err(Error::TimedOut);
            }
            let nap = deadline.min(Deadline::at(now + NAP));
            let value = self.announce_sleep(Asleep::Word);
            let found = self.scan_lanes();
            if matches!(found, Ok(None)) {
                shared_memory::sleep(&self.sleep_word, value, nap);
            }
            self.end_sleep();
            if let Some(span) = found? {
                return Ok(span);
            }
            if !nap.reached(Instant::now()) || deadline.reached(Instant::now()) {
                continue;
            }
            self.announce_sleep(Asleep::Descriptor);
            let found = self.scan_lanes();
            let slept = match found {
                Ok(None) => self.attend_links(deadline),
                _ => Ok(()),
            };
            self.end_sleep();
            slept?;
            if let Some(span) = found? {
                return Ok(span);
            }
        }
    }

    /// Spins, and looks for a message if that has seen something.
    fn spin(&mut self) -> Result<Option<MessageSpan>, Error> {
        match self.spin_until_seen() {
            true => self.scan_lanes(),
            false => Ok(None),
        }
    }

    /// Spins until something is seen, for as long as that has been worth it lately. All
    /// loads are hints, and relaxed: the look that follows loads again, with acquire.
    #[inline(never)]
    pub(super) fn spin_until_seen(&mut self) -> bool {
        if !self.queue.is_here() {
            return true;
        }
        // Each round looks at every lane.
        let looks = self.spins / self.lanes.len().max(1) as u32;
        for look in 0..looks {
            if self.claimed != Some(self.claims.load(Ordering::Relaxed)) {
                return true;
            }
            if self.lanes.iter().any(OpenLane::has_more) {
                self.spins = (2 * self.spins).min(MAX_SPINS);
                return true;
            }
            if look >= TIGHT_SPINS {
                std::hint::spin_loop();
            }
        }
        // The minimum is enough to find out when times change.
        if self.spins > MIN_SPINS {
            self.spins /= 2;
        }
        false
    }

    pub(super) fn announce_sleep(&mut self, how: Asleep) -> u32 {
        self.is_announced = true;
        self.sleeper.announce(&self.sleep_word, how)
    }

    #[inline]
    pub(super) fn end_sleep(&mut self) {
        if self.is_announced {
            self.is_announced = false;
            // The word is not mapped in a fork.
            if self.queue.is_here() {
                self.sleeper.end(&self.sleep_word);
            }
        }
    }

    /// Looks once more before a call returns [`Error::Empty`], after it has announced that
    /// a caller sleeps on the descriptor.
    #[cold]
    pub(super) fn look_before_empty(&mut self) -> Result<MessageSpan, Error> {
        if self.has_watcher {
            self.attend_links(Deadline::at(Instant::now()))?;
            self.announce_sleep(Asleep::Descriptor);
        } else {
            if self.is_attention_due() {
                self.attend_links(Deadline::at(Instant::now()))?;
            }
            if !self.has_no_senders()? {
                return Err(Error::Empty);
            }
        }
        match self.scan_lanes()? {
            Some(span) => {
                self.end_sleep();
                Ok(span)
            }
            None if self.links.is_empty() => Err(Error::Closed),
            None => Err(Error::Empty),
        }
    }
}
