//! Lanes and their senders: what the receiver does when a sender comes or is gone.

use std::time::{Duration, Instant};

use super::Receiver;
use super::open_lane::OpenLane;
use crate::error::Error;
use crate::format::{ClaimState, ClaimWord, REFUSED, lane_lock};
use crate::lane::{Damage, LaneMemory, LaneReader};
use crate::shm::LaneMapping;
use crate::wakeup::space;
use procwright_liveness::HolderLookup;
use procwright_os::robust::wake;
use procwright_os::shared_memory;
use procwright_os::time::Deadline;

/// Time after which the system is asked for senders, where there is nothing to receive. A
/// caller that looks once a second would take an hour for as many looks as `ATTEND_EVERY`.
const ATTEND_INTERVAL: Duration = Duration::from_millis(10);

impl Receiver {
    /// Stops reading the current lane, which is damaged.
    #[cold]
    pub(super) fn refuse(&mut self, damage: Damage) -> Error {
        let lane = &mut self.lanes[self.current];
        lane.is_refused = true;
        lane.reader.refuse();
        let memory = lane.reader.memory();
        // The sender may wait for room.
        if space::take_waiter(memory.space()) {
            wake(memory.space());
        }
        Error::Damaged {
            lane: memory.lane(),
            peer: Some(memory.peer().0.cast_signed()).filter(|pid| *pid > 0),
            what: damage.0,
        }
    }

    /// Makes the lane at that place in the list free, whose sender is gone and whose
    /// messages are received. False if another sender has taken it meanwhile.
    #[cold]
    pub(super) fn reclaim(&mut self, at: usize) -> bool {
        let number = self.lanes[at].reader.memory().lane();
        // An orphan may have had the lane, and left it. Its next sender is another one.
        self.links.unwatch(number);
        let left = self.lanes[at].left_as.take();
        if !left.is_some_and(|left| self.begin_clearing(number, left)) {
            // Whether that one has left as well is seen in the states.
            self.claimed = None;
            return false;
        }
        let lane = self.lanes.swap_remove(at);
        self.clear(lane.reader.memory());
        self.is_open[number as usize] = false;
        true
    }

    /// Keeps senders away from a lane, if its claim still is what it was when its sender
    /// was found to be gone.
    fn begin_clearing(&self, number: u32, left: ClaimWord) -> bool {
        let clearing = left.changed_to(ClaimState::Clearing);
        self.queue.change_claim(number, left, clearing)
    }

    /// Makes a lane free whose state says that it is being cleared. If the receiver is
    /// killed in here, the one that takes over does all of it again.
    fn clear(&self, memory: &LaneMapping) {
        LaneReader::clear(memory, self.queue.geometry());
        space::end_wait(memory.space());
        let claim = self.queue.claim(memory.lane());
        let free = claim.changed_to(ClaimState::Free);
        self.queue.set_claim(memory.lane(), free);
        self.queue.tell_lane_freed();
    }

    /// Forgets a lane that its sender has left empty, and made free: it may be another
    /// sender's by now, who has counted that and will be found.
    #[cold]
    fn forget(&mut self, number: u32) {
        let is_it = |lane: &OpenLane| lane.reader.memory().lane() == number;
        if let Some(at) = self.lanes.iter().position(is_it) {
            self.lanes.swap_remove(at);
        }
        self.links.unwatch(number);
        self.is_open[number as usize] = false;
    }

    /// Reads the claim states of all lanes, after a sender has come or left.
    #[cold]
    pub(super) fn read_claims(&mut self) -> Result<(), Error> {
        for number in 0..self.queue.geometry().lanes() {
            let claim = self.queue.claim(number);
            let is_open = self.is_open[number as usize];
            if claim.state() == ClaimState::Free {
                if is_open {
                    self.forget(number);
                }
                continue;
            }
            if claim.state() == ClaimState::Clearing && !is_open {
                // The last receiver was killed while it cleared this lane.
                let memory = LaneMapping::map(&self.queue, number).map_err(Error::from_io)?;
                self.clear(&memory);
                continue;
            }
            if !is_open {
                let lane = self.open_lane(number)?;
                self.is_open[number as usize] = true;
                self.lanes.push(lane);
            }
            if claim.state() != ClaimState::Taken {
                let mut open = self.lanes.iter_mut();
                if let Some(lane) = open.find(|lane| lane.reader.memory().lane() == number) {
                    lane.left_as = Some(claim);
                }
            }
        }
        // A link is closed when no thread of its process runs any more, so all that was
        // sent is there. That is told once: so if a lane could not be mapped, the numbers
        // stay in `gone` until it can. If this receiver listens, the end of a link means
        // nothing: [`check_orphans`](Receiver::check_orphans) says why. A lane that such a
        // process had freed is not among these, or has the number of its next sender: all
        // that the process did came before the end of its link.
        if !self.links.listens() {
            for lane in &mut self.lanes {
                let memory = lane.reader.memory();
                // The claim is read before the number.
                let claim = self.queue.claim(memory.lane());
                if claim.state() == ClaimState::Taken && self.gone.contains(&memory.peer().1) {
                    lane.left_as = Some(claim);
                }
            }
        }
        self.gone.clear();
        Ok(())
    }

    /// Maps a lane that is not free.
    fn open_lane(&self, number: u32) -> Result<OpenLane, Error> {
        let geometry = *self.queue.geometry();
        let memory = || LaneMapping::map(&self.queue, number).map_err(Error::from_io);
        let lane = |reader, is_refused| OpenLane {
            reader,
            left_as: None,
            is_refused,
        };
        let memory_of_it = memory()?;
        if memory_of_it.head() == REFUSED {
            // The last receiver has refused the lane, and reported it.
            return Ok(lane(LaneReader::refused(memory_of_it, geometry), true));
        }
        let reader = match LaneReader::new(memory_of_it, geometry) {
            Ok(reader) => reader,
            // A process that writes to another's lane has done this. The lane's
            // sender will see that it is not its lane any more.
            Err(_) => {
                LaneReader::clear(&memory()?, &geometry);
                LaneReader::new(memory()?, geometry).map_err(|damage| Error::Damaged {
                    lane: number,
                    peer: None,
                    what: damage.0,
                })?
            }
        };
        // The last receiver may have died after it made room and before it said so.
        let space = reader.memory().space();
        if space::take_waiter(space) {
            wake(space);
        }
        Ok(lane(reader, false))
    }

    /// Returns whether it is time to ask the system for senders, for callers that look all
    /// the time and never sleep. This clock costs no system call, wherever there is one.
    pub(super) fn is_attention_due(&self) -> bool {
        shared_memory::coarse_now().saturating_sub(self.attended_at) >= ATTEND_INTERVAL
    }

    /// Reads the links: which processes have sent a wake-up, have come, or are gone. Sleeps
    /// until one does.
    #[cold]
    pub(super) fn attend_links(&mut self, deadline: Deadline) -> Result<(), Error> {
        self.looks = 0;
        self.check_orphans()?;
        let waited = self.links.wait(&mut self.gone, deadline);
        self.attended_at = shared_memory::coarse_now();
        if !self.gone.is_empty() {
            // A process may have been killed after it took a lane and before it counted
            // that.
            self.claimed = None;
            self.read_claims()?;
            self.check_orphans()?;
        }
        // The orphan's lock was looked at before the sleep, and its end is told once.
        if self.links.take_orphan_ended() {
            self.check_orphans()?;
        }
        Ok(waited?)
    }

    /// Gives back the links of processes that are gone, before there is another link. A
    /// receiver that invites many, one after the other, and always has something to
    /// receive, would run out of descriptors.
    pub(super) fn drop_closed_links(&mut self) {
        let is_announced = self.is_announced;
        // Errors come again in the next call that receives.
        let _ = self.attend_links(Deadline::at(Instant::now()));
        if is_announced {
            // The bytes that were read were meant for the sleeper on the descriptor.
            self.links.wake_self();
        }
    }

    /// Returns whether no process is left that could send. A process that has connected and
    /// was not accepted yet counts.
    pub(super) fn has_no_senders(&mut self) -> Result<bool, Error> {
        if self.links.is_empty() && self.links.listens() {
            self.attend_links(Deadline::at(Instant::now()))?;
        }
        Ok(self.links.is_empty())
    }

    /// Finds the lanes whose senders have no link, and those of them whose senders are
    /// gone.
    ///
    /// A sender that has lost its receiver connects to this one when it has something to
    /// send. Until then its lock says whether it is there, and its process tells when that
    /// has changed. A sender with a link is seen by that. *Not by the link alone*, as in a
    /// receiver that does not listen: a sender may give up one link for another.
    fn check_orphans(&mut self) -> Result<(), Error> {
        if !self.links.listens() {
            return Ok(());
        }
        if self.claimed.is_none() {
            self.read_claims()?;
        }
        let linked = self.links.linked();
        let (mut are_there, mut are_hidden) = (false, false);
        for lane in &mut self.lanes {
            let memory = lane.reader.memory();
            let number = memory.lane();
            if lane.left_as.is_some() || linked.contains(&memory.peer().1) {
                self.links.unwatch(number);
                continue;
            }
            // The watch comes before the look at the lock: an end after that look is told.
            if !self.links.watches(number) {
                match HolderLookup::find(&memory.holder()) {
                    // A process that has ended and was not reaped would be told at once,
                    // and again each time, for as long as another process has its locks.
                    HolderLookup::Found(process)
                        if process.pidfd().is_some() && process.is_alive() =>
                    {
                        self.links.watch(number, process)?;
                    }
                    _ => are_hidden = true,
                }
            }
            // A lane that was freed is not locked in vain: a sender that finds it locked
            // looks for another.
            if self.queue.claim(number).state() == ClaimState::Free {
                continue;
            }
            let file = self.queue.file()?;
            if shared_memory::lock(file, lane_lock(number))? {
                // Under the lock nobody takes the lane: it stays free, if it was freed since
                // that look.
                let claim = self.queue.claim(number);
                lane.left_as = Some(claim).filter(|claim| claim.state() != ClaimState::Free);
                shared_memory::unlock(file, lane_lock(number));
                self.links.unwatch(number);
            } else {
                are_there = true;
            }
        }
        // Lanes that were not opened yet may have any sender.
        let are_known = self.claimed.is_some();
        self.links
            .set_orphans(are_there || !are_known, are_hidden && are_there);
        Ok(())
    }
}
