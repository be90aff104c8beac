//! Who has which lane: what the receiver does when somebody comes or is gone.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::turns::Lane;
use crate::liveness::Seen;
use crate::queue::bell::space;
use crate::queue::ends::memory::LaneMemory;
use crate::queue::format::{REFUSED, State, lane_lock};
use crate::queue::lane::{Consumer, Damage, Memory};
use crate::queue::{Error, Receiver};
use crate::sys::robust::wake;
use crate::sys::shared;
use crate::time::Deadline;

impl Receiver {
    /// Damage in the lane that is read now.
    #[cold]
    pub(super) fn refuse(&mut self, damage: Damage) -> Error {
        let lane = &mut self.lanes[self.turn];
        lane.is_refused = true;
        lane.consumer.refuse();
        let memory = lane.consumer.memory();
        // Who waits for room is told.
        if space::made(memory.space()) {
            wake(memory.space());
        }
        Error::Damaged {
            lane: memory.lane(),
            peer: Some(memory.peer().0.cast_signed()).filter(|pid| *pid > 0),
            what: damage.0,
        }
    }

    /// A lane is free again.
    #[cold]
    pub(super) fn reclaim(&mut self, lane: &Lane) {
        let memory = lane.consumer.memory();
        // If it was an orphan's, that may have left. The next who has the lane is another.
        self.guests.forget(memory.lane());
        self.clear(memory);
        self.is_open[memory.lane() as usize] = false;
    }

    /// Makes a lane free. Whoever takes over from one who is killed in here does it
    /// again.
    fn clear(&self, memory: &LaneMemory) {
        self.ground.set_state(memory.lane(), State::Clearing);
        Consumer::clear(memory, self.ground.geometry());
        space::waited(memory.space());
        self.ground.set_state(memory.lane(), State::Free);
    }

    /// Somebody has come, or left.
    #[cold]
    pub(super) fn look_at_claims(&mut self) -> Result<(), Error> {
        for number in 0..self.ground.geometry().lanes() {
            let state = self.ground.state(number).load(Ordering::Acquire);
            if state == State::Free as u32 {
                continue;
            }
            let is_open = self.is_open[number as usize];
            if state == State::Clearing as u32 && !is_open {
                // The last receiver has not got to the end of that.
                let memory = LaneMemory::map(&self.ground, number).map_err(Error::of)?;
                self.clear(&memory);
                continue;
            }
            if !is_open {
                let lane = self.enter(number)?;
                self.is_open[number as usize] = true;
                self.lanes.push(lane);
            }
            if state != State::Taken as u32 {
                for lane in &mut self.lanes {
                    lane.is_left |= lane.consumer.memory().lane() == number;
                }
            }
        }
        // A link is closed when no thread of its process runs any more, so all
        // that was sent is there. It tells once: so if a lane could not be mapped,
        // they are remembered until it can. Where one may come anew, to lose a link
        // says nothing: see there.
        if !self.guests.listens() {
            for lane in &mut self.lanes {
                lane.is_left |= self.gone.contains(&lane.consumer.memory().peer().1);
            }
        }
        self.gone.clear();
        Ok(())
    }

    /// A lane that somebody has.
    fn enter(&self, number: u32) -> Result<Lane, Error> {
        let geometry = *self.ground.geometry();
        let memory = || LaneMemory::map(&self.ground, number).map_err(Error::of);
        let lane = |consumer, is_refused| Lane {
            consumer,
            is_left: false,
            is_refused,
        };
        let memory_of_it = memory()?;
        if memory_of_it.head() == REFUSED {
            // By the last receiver, who has told of it.
            return Ok(lane(Consumer::refused(memory_of_it, geometry), true));
        }
        let consumer = match Consumer::new(memory_of_it, geometry) {
            Ok(consumer) => consumer,
            // Only who writes where it may not can have done this. Its
            // sender will see that this is not its lane any more.
            Err(_) => {
                Consumer::clear(&memory()?, &geometry);
                Consumer::new(memory()?, geometry).map_err(|damage| Error::Damaged {
                    lane: number,
                    peer: None,
                    what: damage.0,
                })?
            }
        };
        // The last receiver may have made room and not said so.
        let space = consumer.memory().space();
        if space::made(space) {
            wake(space);
        }
        Ok(lane(consumer, false))
    }

    /// Sees who has rung and who is gone, and sleeps until somebody has or is.
    #[cold]
    pub(super) fn attend(&mut self, deadline: Deadline) -> Result<(), Error> {
        self.looks = 0;
        self.look_for_orphans()?;
        let waited = self.guests.wait(&mut self.gone, deadline);
        self.attended = shared::last_tick();
        if !self.gone.is_empty() {
            // Whoever was killed when it had taken a lane may not have said so.
            self.claimed = None;
            self.look_at_claims()?;
            self.look_for_orphans()?;
        }
        // Its lock was looked at before the sleep, and nothing will tell of it again.
        if self.guests.has_lost_an_orphan() {
            self.look_for_orphans()?;
        }
        Ok(waited?)
    }

    /// Gives back the links of those who have left, before there is another: who
    /// invites many, one after the other, and always has something to receive, would
    /// run out of descriptors.
    pub(super) fn see_who_has_left(&mut self) {
        let is_armed = self.is_armed;
        // What goes wrong is told by the next call that receives.
        let _ = self.attend(Deadline::at(Instant::now()));
        if is_armed {
            // Whoever has rung was for who sleeps on the descriptor.
            self.guests.ring_ourselves();
        }
    }

    /// Whether nobody is left who could send. Who has come and was not let in yet is
    /// there all the same.
    pub(super) fn is_forsaken(&mut self) -> Result<bool, Error> {
        if self.guests.is_empty() && self.guests.listens() {
            self.attend(Deadline::at(Instant::now()))?;
        }
        Ok(self.guests.is_empty())
    }

    /// Looks which lanes have senders that have no link, and which of these are gone.
    ///
    /// A sender that has lost its receiver comes anew when it has something to send.
    /// Until then its lock says whether it is there, and its process tells when that
    /// has changed. One that has a link tells by that. *Not by the link alone*, as to a
    /// receiver that nobody comes to anew: a sender may give one up for another.
    fn look_for_orphans(&mut self) -> Result<(), Error> {
        if !self.guests.listens() {
            return Ok(());
        }
        if self.claimed.is_none() {
            self.look_at_claims()?;
        }
        let linked = self.guests.linked();
        let (mut are_there, mut are_hidden) = (false, false);
        for lane in &mut self.lanes {
            let memory = lane.consumer.memory();
            let number = memory.lane();
            if lane.is_left || linked.contains(&memory.peer().1) {
                self.guests.forget(number);
                continue;
            }
            // Before the look at its lock: if it is gone after that, it is told of.
            if !self.guests.watches(number) {
                match Seen::of(&memory.holder()) {
                    // One that has ended and was not reaped would be told of at once, and
                    // again each time, for as long as somebody else has its locks.
                    Seen::It(process) if process.pidfd().is_some() && process.is_alive() => {
                        self.guests.watch(number, process)?;
                    }
                    _ => are_hidden = true,
                }
            }
            let file = self.ground.file()?;
            if shared::lock(file, lane_lock(number))? {
                shared::unlock(file, lane_lock(number));
                lane.is_left = true;
                self.guests.forget(number);
            } else {
                are_there = true;
            }
        }
        // Those that were not opened yet are nobody's that is known.
        let are_known = self.claimed.is_some();
        self.guests
            .found_orphans(are_there || !are_known, are_hidden && are_there);
        Ok(())
    }
}
