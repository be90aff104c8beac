//! A process that sends: what all its senders share.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::link::{CurrentLink, ReceiverLink};
use super::monitor::{ReceiverGone, ReceiverMonitor};
use crate::error::Error;
use crate::format::{ClaimState, ClaimWord, HEAD, TAIL, lane_lock};
use crate::invitation::Invitation;
use crate::lane::LaneWriter;
use crate::names::{self, QueueName};
use crate::shm::{LaneMapping, QueueFile};
use crate::wakeup::lane;
use procwright_liveness::HolderId;
use procwright_os::robust::{PendingOp, wake};
use procwright_os::shared_memory;
use procwright_os::sync::Mutex;
use procwright_os::time::Deadline;

#[derive(Debug)]
pub(super) struct SenderProcess {
    pub(super) queue: Arc<QueueFile>,
    monitor: ReceiverMonitor,
    /// Wakes the receiver when it sleeps on its descriptor, and tells when it is gone.
    link: CurrentLink,
    /// The identity of this process, as a receiver that takes over will look for it.
    holder: HolderId,
    /// Held by the one sender that takes or leaves a lane: the locks of lanes belong to the
    /// process, and exclude none of its own senders.
    claims: Mutex<()>,
}

/// Number of times that a name is looked up which is another queue's by the time that this
/// process has opened it.
const OPEN_TRIES: u32 = 100;

impl SenderProcess {
    pub(super) fn invited(invitation: Invitation) -> Result<SenderProcess, Error> {
        let queue = QueueFile::open_as_sender(invitation.file.as_fd(), invitation.nonce)?;
        let link = ReceiverLink::invited(invitation.link, &queue);
        Ok(SenderProcess::new(
            queue,
            CurrentLink::new(link, invitation.guest),
        ))
    }

    /// A process that knows the name and nothing else. The receiver need not do anything.
    pub(super) fn named(name: &QueueName) -> Result<SenderProcess, Error> {
        for _ in 0..OPEN_TRIES {
            let (found, file) = names::find(name)?;
            let queue = QueueFile::open_as_sender(found.file.as_fd(), found.nonce)?;
            // The line is written before it is known whether there is a receiver: from now
            // on one that takes over finds the queue through this process.
            match file.add_sender(found.nonce, queue.file()?) {
                Err(Error::NoQueue { .. }) => continue,
                joined => joined?,
            }
            let link = CurrentLink::connect(&queue)?;
            return Ok(SenderProcess::new(queue, link));
        }
        Err(name.no_queue())
    }

    fn new(queue: QueueFile, link: CurrentLink) -> SenderProcess {
        let queue = Arc::new(queue);
        SenderProcess {
            monitor: ReceiverMonitor::new(&queue),
            queue,
            link,
            holder: HolderId::ourselves(),
            claims: Mutex::new(()),
        }
    }

    /// Takes a free lane, or else one that was left and is read to its end.
    pub(super) fn claim_lane(&self) -> Result<LaneWriter<LaneMapping>, Error> {
        self.check()?;
        let queue = &self.queue;
        let _alone = self.claims.lock();
        let lanes = queue.geometry().lanes();
        for wanted in [ClaimState::Free, ClaimState::Left] {
            for lane in 0..lanes {
                // A lane that has a sender is not locked: its lock says whether that is
                // there.
                let is_had = queue.claim(lane).state() == wanted
                    && (wanted == ClaimState::Free || self.is_read(lane)?)
                    && shared_memory::lock(queue.file()?, lane_lock(lane))?;
                if !is_had {
                    continue;
                }
                let entered = self.take_lane(lane);
                if !matches!(entered, Ok(Some(_))) {
                    shared_memory::unlock(queue.file()?, lane_lock(lane));
                }
                if let Some(writer) = entered? {
                    return Ok(writer);
                }
            }
        }
        Err(Error::NoLane(lanes))
    }

    /// Returns whether the receiver has read all of a lane. A hint: the file is read, which
    /// costs less than to map each lane that is looked at.
    fn is_read(&self, lane: u32) -> Result<bool, Error> {
        let (file, geometry) = (self.queue.file()?, self.queue.geometry());
        let head = shared_memory::read_u64(file, geometry.line(lane) + HEAD)?;
        let tail = shared_memory::read_u64(file, geometry.lane_page(lane) + TAIL)?;
        Ok(head == tail)
    }

    /// Takes a free lane once there is one. None if `may_sleep`, which is asked before each
    /// sleep, says no.
    ///
    /// # Errors
    /// [`Error::OpenTimedOut`], and those of [`claim_lane`](Self::claim_lane).
    pub(super) fn claim_lane_by(
        &self,
        deadline: Deadline,
        mut may_sleep: impl FnMut() -> bool,
    ) -> Result<Option<LaneWriter<LaneMapping>>, Error> {
        let mut announced = None;
        loop {
            let reason = match self.claim_lane() {
                Err(reason @ Error::NoLane(_)) => reason,
                taken => return taken.map(Some),
            };
            if deadline.reached(Instant::now()) {
                return Err(Error::OpenTimedOut(Box::new(reason)));
            }
            match announced.take() {
                // The last look was behind the announcement.
                Some(value) if may_sleep() => self.sleep(self.queue.freed(), value, deadline)?,
                Some(_) => return Ok(None),
                None => announced = Some(lane::announce_wait(self.queue.freed())),
            }
        }
    }

    /// Takes a lane that is locked; none if it cannot be had.
    fn take_lane(&self, lane: u32) -> Result<Option<LaneWriter<LaneMapping>>, Error> {
        let queue = &self.queue;
        // Another sender may have taken the lane between the look and the lock, and be about
        // to leave it:
        // 1. this sender sees the state free;
        // 2. another one takes the lane, writes, and sets the state to left;
        // 3. it frees the lock, and this one gets it.
        //
        // So the state is read again, under the lock.
        let claim = queue.claim(lane);
        if !matches!(claim.state(), ClaimState::Free | ClaimState::Left) {
            return Ok(None);
        }
        // A receiver that sees the new state, or the new count, sees what this process has
        // written about itself before. The count comes last, since it makes the receiver
        // read the states.
        let change = |new: ClaimWord| {
            let is_done = queue.change_claim(lane, claim, new);
            queue.claims().fetch_add(1, Ordering::AcqRel);
            is_done
        };
        let memory = LaneMapping::map(queue, lane).map_err(Error::from_io)?;
        memory.provide_page().map_err(Error::from_io)?;
        let writer = match LaneWriter::new(memory, *queue.geometry()) {
            Ok(writer) if claim.state() == ClaimState::Left => {
                if !writer.is_reusable() {
                    return Ok(None);
                }
                writer.give_back();
                writer
            }
            Ok(writer) => writer,
            // There is something to read.
            Err(_) if claim.state() == ClaimState::Left => return Ok(None),
            Err(_) => {
                // A process has left nonsense in a lane that was not its own. The receiver
                // finds that and clears the lane.
                change(claim.changed_to(ClaimState::Left));
                return Ok(None);
            }
        };
        let guest = self.link.guest();
        writer.memory().set_peer(&self.holder, guest);
        // A failed exchange means that the receiver clears the lane, which it then frees,
        // or that a process has changed the state without the lock.
        Ok(change(claim.taken_by_next()).then_some(writer))
    }

    /// Gives a lane back. Messages in it will be received; without any it is free at once,
    /// whatever the receiver does.
    pub(super) fn release_lane(&self, writer: &LaneWriter<LaneMapping>) {
        let (queue, lane) = (&self.queue, writer.memory().lane());
        // The order of the steps matters, and the mutex is held for all of them:
        // 1. the state becomes left or free. Before the unlock, since a receiver that takes
        //    over would find an unlocked lane whose sender has died, and free it; this
        //    store could then hit the next sender's lane;
        // 2. the lock is freed. Under the mutex, since another sender of this process could
        //    take the lane in between, and this unlock would free its lock, which is the
        //    same;
        // 3. those who wait for a lane are woken. After the unlock: before it they would
        //    find the lane locked. If this process is killed in between, they look for
        //    themselves within a second.
        let _alone = self.claims.lock();
        let state = match writer.is_reusable() {
            true => ClaimState::Free,
            false => ClaimState::Left,
        };
        if state == ClaimState::Free && writer.has_memory() {
            writer.give_back();
        }
        queue.set_claim(lane, queue.claim(lane).changed_to(state));
        queue.claims().fetch_add(1, Ordering::AcqRel);
        if let Ok(file) = queue.file() {
            shared_memory::unlock(file, lane_lock(lane));
        }
        if state == ClaimState::Free {
            queue.tell_lane_freed();
        }
    }

    /// Returns whether nothing stands in the way of a message. Two loads.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.queue.is_here() && self.monitor.word_says_alive()
    }

    /// Checks that the receiver lives, or finds another one.
    #[inline]
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.queue.is_here() {
            return Err(Error::Forked);
        }
        match self.monitor.receiver_gone(&self.link) {
            None => Ok(()),
            Some(gone) => self.find_new_receiver(gone),
        }
    }

    /// Finds the next receiver, if the last one has died.
    #[cold]
    fn find_new_receiver(&self, gone: ReceiverGone) -> Result<(), Error> {
        if gone != ReceiverGone::Died {
            return Err(gone.into());
        }
        self.link.renew(&self.queue)?;
        // The next one may have died as well. One attempt is enough for a call.
        self.monitor
            .receiver_gone(&self.link)
            .map_or(Ok(()), |gone| Err(gone.into()))
    }

    /// Asks the system whether the receiver is there.
    #[cold]
    pub(super) fn ask_system(&self) -> Result<(), Error> {
        match self.monitor.ask_system(&self.link) {
            None => Ok(()),
            Some(gone) => self.find_new_receiver(gone),
        }
    }

    /// Wakes a receiver that sleeps on its descriptor.
    pub(super) fn ring(&self) {
        self.link.ring(&self.queue);
    }

    /// Sleeps until what is waited for is there, room or a lane, or the receiver is gone. May
    /// return before.
    #[doc(alias = "futex_waitv")]
    pub(super) fn sleep(
        &self,
        awaited: &AtomicU32,
        while_it_is: u32,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let word = self.monitor.word();
        let limit = Deadline::at(Instant::now() + self.monitor.sleep_limit()).min(deadline);
        // Held until the other sleepers are awake: if this process is killed before that,
        // the kernel wakes the next one. That of the other word need not be passed on.
        let _pending = word.map(|(word, value)| PendingOp::on(word, value));
        let slept = match word {
            Some(word) => {
                self.check()?;
                shared_memory::sleep_on_two([(awaited, while_it_is), word], limit)
            }
            None => Err(std::io::ErrorKind::Unsupported.into()),
        };
        if slept.is_err() {
            shared_memory::sleep(awaited, while_it_is, limit);
        }
        if let Some((word, _)) = word.filter(|(word, value)| word.load(Ordering::Relaxed) != *value)
        {
            // The kernel wakes one of those that sleep on a word whose holder ends; each
            // wakes the next.
            wake(word);
        }
        match limit.reached(Instant::now()) {
            true => self.ask_system(),
            false => Ok(()),
        }
    }
}
