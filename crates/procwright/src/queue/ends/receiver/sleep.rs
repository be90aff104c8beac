//! How a receiver waits: it looks for as long as that has been worth it lately, and
//! then sleeps, on a word or on its descriptor.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::turns::Lane;
use crate::queue::bell::Sleep;
use crate::queue::lane::Place;
use crate::queue::{Error, Receiver};
use crate::sys::shared;
use crate::time::Deadline;

/// Most sleeps are short, and are woken by a word, for less. Whether a sender is
/// killed just when it was about to wake us is told by its link: so nobody sleeps
/// on the word for longer.
const NAP: Duration = Duration::from_millis(10);

/// How many looks at a lane are spent before a sleep at most: some microseconds.
pub(super) const PATIENCE: u32 = 2000;
/// So many of them follow each other at once.
const QUICK: u32 = 400;
pub(super) const LEAST_PATIENCE: u32 = 100;

/// Where there is nothing the system is asked who is there after so long, too: who looks
/// once a second would take an hour for as many looks as that takes otherwise.
const UNATTENDED: Duration = NAP;

impl Receiver {
    /// For who looks all the time and never sleeps: this clock costs no system call,
    /// wherever there is any.
    pub(super) fn is_unattended(&self) -> bool {
        shared::last_tick().saturating_sub(self.attended) >= UNATTENDED
    }

    /// Sleeps until there is a message.
    pub(super) fn wait(&mut self, deadline: Deadline) -> Result<Place, Error> {
        self.disarm();
        loop {
            if let Some(place) = self.look()? {
                return Ok(place);
            }
            if let Some(place) = self.be_patient()? {
                return Ok(place);
            }
            if self.is_forsaken()? {
                // They were gone before this last look.
                return self.look_at_lanes()?.ok_or(Error::Closed);
            }
            let now = Instant::now();
            if deadline.reached(now) {
                return Err(Error::TimedOut);
            }
            let nap = deadline.min(Deadline::at(now + NAP));
            let value = self.arm(Sleep::Word);
            let found = self.look_at_lanes();
            if matches!(found, Ok(None)) {
                shared::sleep(&self.bell, value, nap);
            }
            self.disarm();
            if let Some(place) = found? {
                return Ok(place);
            }
            if !nap.reached(Instant::now()) || deadline.reached(Instant::now()) {
                continue;
            }
            self.arm(Sleep::Link);
            let found = self.look_at_lanes();
            let slept = match found {
                Ok(None) => self.attend(deadline),
                _ => Ok(()),
            };
            self.disarm();
            slept?;
            if let Some(place) = found? {
                return Ok(place);
            }
        }
    }

    /// Looks for as long as it has been worth it lately.
    fn be_patient(&mut self) -> Result<Option<Place>, Error> {
        match self.is_worth_a_look() {
            true => self.look_at_lanes(),
            false => Ok(None),
        }
    }

    /// Waits as long as it has been worth it lately for something to be seen.
    #[inline(never)]
    pub(super) fn is_worth_a_look(&mut self) -> bool {
        if !self.ground.is_here() {
            return true;
        }
        // A look is one at each lane.
        let looks = self.patience / self.lanes.len().max(1) as u32;
        for look in 0..looks {
            if self.claimed != Some(self.claims.load(Ordering::Relaxed)) {
                return true;
            }
            if self.lanes.iter().any(Lane::has_more) {
                self.patience = (2 * self.patience).min(PATIENCE);
                return true;
            }
            if look >= QUICK {
                std::hint::spin_loop();
            }
        }
        // Never so little that it could not find out when times change.
        if self.patience > LEAST_PATIENCE {
            self.patience /= 2;
        }
        false
    }

    pub(super) fn arm(&mut self, how: Sleep) -> u32 {
        self.is_armed = true;
        self.sleeper.arm(&self.bell, how)
    }

    #[inline]
    pub(super) fn disarm(&mut self) {
        if self.is_armed {
            self.is_armed = false;
            // In a fork the bell is not there.
            if self.ground.is_here() {
                self.sleeper.disarm(&self.bell);
            }
        }
    }

    /// There was no message. Whoever sleeps on the descriptor is told of the next.
    #[cold]
    pub(super) fn look_once_more(&mut self) -> Result<Place, Error> {
        if self.is_watched {
            self.attend(Deadline::at(Instant::now()))?;
            self.arm(Sleep::Link);
        } else {
            if self.is_unattended() {
                self.attend(Deadline::at(Instant::now()))?;
            }
            if !self.is_forsaken()? {
                return Err(Error::Empty);
            }
        }
        match self.look_at_lanes()? {
            Some(place) => {
                self.disarm();
                Ok(place)
            }
            None if self.guests.is_empty() => Err(Error::Closed),
            None => Err(Error::Empty),
        }
    }
}
