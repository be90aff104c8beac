//! A process's place at a queue, which its senders share.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::queue::ends::ground::Ground;
use crate::queue::ends::life::{Gone, Watch};
use crate::queue::ends::link::{Link, Links};
use crate::queue::ends::memory::LaneMemory;
use crate::queue::format::{State, lane_lock};
use crate::queue::lane::Producer;

use crate::liveness::Holder;
use crate::queue::ends::names;
use crate::queue::{Error, Invitation};
use crate::sys::robust::{Pending, wake};
use crate::sys::shared;
use crate::time::Deadline;

#[derive(Debug)]
pub(super) struct Guest {
    pub(super) ground: Arc<Ground>,
    watch: Watch,
    /// To wake the receiver when it sleeps on its descriptor; and it tells when
    /// nobody reads it.
    links: Links,
    /// This process, for who takes over.
    holder: Holder,
    /// One at a time: locks of lanes are the process's, and nothing between its
    /// senders.
    claims: Mutex<()>,
}

/// How often a name is looked up that has another queue by the time that we have come
/// there.
const TRIES: u32 = 100;

impl Guest {
    pub(super) fn invited(invitation: Invitation) -> Result<Guest, Error> {
        let ground = Ground::attach(invitation.file.as_fd(), invitation.nonce)?;
        let link = Link::invited(invitation.link, &ground);
        Ok(Guest::new(ground, Links::new(link, invitation.guest)))
    }

    /// One who knows the name and nothing else. The receiver need not do anything.
    pub(super) fn by_name(name: &str) -> Result<Guest, Error> {
        for _ in 0..TRIES {
            let (found, file) = names::find(name)?;
            let ground = Ground::attach(found.file.as_fd(), found.nonce)?;
            // Before it is known whether there is a receiver: from now on one that
            // takes over finds the queue by us.
            match file.join(found.nonce, ground.file()?) {
                Err(Error::NoQueue(_)) => continue,
                joined => joined?,
            }
            let links = Links::come(&ground)?;
            return Ok(Guest::new(ground, links));
        }
        Err(Error::NoQueue(name.to_owned()))
    }

    fn new(ground: Ground, links: Links) -> Guest {
        let ground = Arc::new(ground);
        Guest {
            watch: Watch::new(&ground),
            ground,
            links,
            holder: Holder::ourselves(),
            claims: Mutex::new(()),
        }
    }

    /// Takes a free lane.
    pub(super) fn claim(&self) -> Result<Producer<LaneMemory>, Error> {
        self.check()?;
        let ground = &self.ground;
        let _alone = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = ground.geometry().lanes();
        for lane in 0..lanes {
            let state = ground.state(lane);
            // Not locked before it is seen to be free: the locks of others' lanes
            // say whether they are there.
            if state.load(Ordering::Acquire) != State::Free as u32
                || !shared::lock(ground.file()?, lane_lock(lane))?
            {
                continue;
            }
            let entered = self.enter(lane);
            if !matches!(entered, Ok(Some(_))) {
                shared::unlock(ground.file()?, lane_lock(lane));
            }
            if let Some(producer) = entered? {
                return Ok(producer);
            }
        }
        Err(Error::NoLane(lanes))
    }

    /// Takes a lane that is locked; none if it is not to be had.
    fn enter(&self, lane: u32) -> Result<Option<Producer<LaneMemory>>, Error> {
        let ground = &self.ground;
        let state = ground.state(lane);
        // Others take it under the lock only; but between the look and the lock it may
        // have been taken, and its sender be about to leave: it is theirs until then.
        if state.load(Ordering::Acquire) != State::Free as u32 {
            return Ok(None);
        }
        let change = |new: State| {
            let (free, order) = (State::Free as u32, (Ordering::AcqRel, Ordering::Relaxed));
            let is_done = state.compare_exchange(free, new as u32, order.0, order.1);
            ground.claims().fetch_add(1, Ordering::AcqRel);
            is_done.is_ok()
        };
        let memory = LaneMemory::map(ground, lane).map_err(Error::of)?;
        memory.provide_page().map_err(Error::of)?;
        let Ok(producer) = Producer::new(memory, *ground.geometry()) else {
            // Somebody has left nonsense in a lane that is not theirs. The receiver
            // finds that and puts it in order.
            change(State::Left);
            return Ok(None);
        };
        let guest = self.links.number();
        producer.memory().set_peer(&self.holder, guest);
        // Not so if somebody got on without a lock.
        Ok(change(State::Taken).then_some(producer))
    }

    /// Gives a lane back. What is in it will be received.
    pub(super) fn leave(&self, lane: u32) {
        let ground = &self.ground;
        // Under the lock of all: once it is left, it may be that of another sender of
        // this process, whose lock is ours. And not unlocked before it is left: one
        // who takes over would find a lane whose sender has died, and when we go on
        // and say that we have left it, it may be another's.
        let _alone = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        ground.set_state(lane, State::Left);
        ground.claims().fetch_add(1, Ordering::AcqRel);
        if let Ok(file) = ground.file() {
            shared::unlock(file, lane_lock(lane));
        }
    }

    /// Whether there is nothing to be told. Two loads.
    #[inline]
    pub(super) fn is_well(&self) -> bool {
        self.ground.is_here() && self.watch.is_told_alive()
    }

    /// The same, and what is to be told.
    #[inline]
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.ground.is_here() {
            return Err(Error::Forked);
        }
        match self.watch.gone(&self.links) {
            None => Ok(()),
            Some(gone) => self.look_for_another(gone),
        }
    }

    /// If the receiver has died, another may have taken over.
    #[cold]
    fn look_for_another(&self, gone: Gone) -> Result<(), Error> {
        if gone != Gone::Died {
            return Err(gone.told());
        }
        self.links.renew(&self.ground)?;
        // It may have died as well. That is enough for once.
        self.watch
            .gone(&self.links)
            .map_or(Ok(()), |gone| Err(gone.told()))
    }

    /// Asks the system whether the receiver is there.
    #[cold]
    pub(super) fn ask(&self) -> Result<(), Error> {
        match self.watch.ask(&self.links) {
            None => Ok(()),
            Some(gone) => self.look_for_another(gone),
        }
    }

    /// Wakes a receiver that sleeps on its descriptor.
    pub(super) fn ring(&self) {
        self.links.ring(&self.ground);
    }

    /// Until somebody makes room, or the receiver is gone. May return before.
    pub(super) fn sleep(
        &self,
        space: &AtomicU32,
        while_it_is: u32,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let word = self.watch.word();
        let nap = Deadline::at(Instant::now() + self.watch.nap()).min(deadline);
        // Until the others are awake: if this one is killed before, the kernel wakes
        // the next. Nobody else sleeps on the other word.
        let _pending = word.map(|(word, value)| Pending::on(word, value));
        let slept = match word {
            Some(word) => {
                self.check()?;
                shared::sleep_on_two([(space, while_it_is), word], nap)
            }
            None => Err(std::io::ErrorKind::Unsupported.into()),
        };
        if slept.is_err() {
            shared::sleep(space, while_it_is, nap);
        }
        if let Some((word, _)) = word.filter(|(word, value)| word.load(Ordering::Relaxed) != *value)
        {
            // The kernel wakes one of those who sleep on a word whose holder ends.
            wake(word);
        }
        match nap.reached(Instant::now()) {
            true => self.ask(),
            false => Ok(()),
        }
    }
}
