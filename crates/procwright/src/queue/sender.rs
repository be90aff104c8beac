//! The side that sends.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::bell::{Ringer, Sleep, space};
use super::format::{State, lane_lock};
use super::ground::Ground;
use super::lane::{Place, Producer, Shortage};
use super::life::{Gone, Watch};
use super::memory::LaneMemory;
use super::reservation::Reservation;
use super::{Error, Invitation};
use crate::sys::fork::Kept;
use crate::sys::robust::{Pending, wake};
use crate::sys::shared::{self, Word};
use crate::time::{Deadline, Timeout};

/// What happens to a message that finds no room, when its lane may not grow
/// further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// [`send`](Sender::send) waits until there is room.
    #[default]
    Block,
    /// `send` returns [`Error::Full`].
    Fail,
    /// The message is thrown away, and [counted](Sender::dropped).
    DropNewest,
}

/// Sends messages to a queue's [`Receiver`](super::Receiver).
///
/// Each has a lane of its own, so senders never wait for each other, and a message
/// of one that is stopped or killed in the middle is not there at all. What one
/// sender sends is received in that order; between senders there is no order.
///
/// It is for one thread at a time. For another thread make another with
/// [`try_clone`](Sender::try_clone).
#[derive(Debug)]
pub struct Sender {
    producer: Producer<LaneMemory>,
    guest: Arc<Guest>,
    bell: Word<AtomicU32>,
    ringer: Ringer,
    overflow: Overflow,
    dropped: u64,
    /// Sent since the link was looked at.
    unchecked: u32,
}

/// A process's place at a queue, which its senders share.
#[derive(Debug)]
struct Guest {
    ground: Arc<Ground>,
    watch: Watch,
    /// To wake the receiver when it sleeps on its descriptor; and it tells when
    /// nobody reads it.
    link: Kept,
    number: u32,
    /// One at a time: locks of lanes are the process's, and nothing between its
    /// senders.
    claims: Mutex<()>,
}

/// Whether the receiver is there is asked of the system, too, once in so many
/// messages: should the kernel have failed to mark its word.
const UNCHECKED: u32 = 4096;

impl Sender {
    /// Takes a place at a queue.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no queue, [`Error::WrongVersion`],
    /// [`Error::NoLane`], [`Error::ReceiverDead`], [`Error::Closed`],
    /// [`Error::Unsupported`], or [`Error::Io`] when there is no memory or
    /// descriptor left.
    pub fn attach(invitation: Invitation) -> Result<Sender, Error> {
        let ground = Ground::attach(invitation.file.as_fd(), invitation.nonce)?;
        let ground = Arc::new(ground);
        Sender::claim(Arc::new(Guest {
            watch: Watch::new(&ground),
            ground,
            link: Kept::new(invitation.link),
            number: invitation.guest,
            claims: Mutex::new(()),
        }))
    }

    /// Another one for the same queue, in this process.
    ///
    /// # Errors
    /// As [`attach`](Sender::attach); [`Error::Forked`].
    pub fn try_clone(&self) -> Result<Sender, Error> {
        self.check()?;
        let mut new = Sender::claim(Arc::clone(&self.guest))?;
        new.overflow = self.overflow;
        Ok(new)
    }

    /// Takes a free lane.
    fn claim(guest: Arc<Guest>) -> Result<Sender, Error> {
        guest.check()?;
        let ground = &guest.ground;
        let alone = guest.claims.lock().unwrap_or_else(PoisonError::into_inner);
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
            let entered = guest.enter(lane);
            if !matches!(entered, Ok(Some(_))) {
                shared::unlock(ground.file()?, lane_lock(lane));
            }
            let Some(mut producer) = entered? else {
                continue;
            };
            if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
                producer.be_patient();
            }
            drop(alone);
            return Ok(Sender {
                producer,
                bell: ground.bell(),
                guest,
                ringer: Ringer::new(),
                overflow: Overflow::default(),
                dropped: 0,
                unchecked: 0,
            });
        }
        Err(Error::NoLane(lanes))
    }

    /// What happens when there is no room. [`Overflow::Block`] at first.
    pub fn set_overflow(&mut self, overflow: Overflow) {
        self.overflow = overflow;
    }

    /// This lane grows no further than to blocks of so many bytes; what is longer
    /// is [too large](Error::TooLarge) from then on. At first the queue's limit
    /// holds.
    pub fn set_limit(&mut self, bytes: usize) {
        self.producer.set_limit(bytes as u64);
    }

    /// How many messages were thrown away under [`Overflow::DropNewest`].
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Sends a message. When this returns, it will be received even if this
    /// process is killed.
    ///
    /// # Blocking
    /// While there is no room, under [`Overflow::Block`].
    ///
    /// # Errors
    /// [`Error::ReceiverDead`], [`Error::Closed`], [`Error::TooLarge`],
    /// [`Error::Full`] under [`Overflow::Fail`], [`Error::Io`] when there is no
    /// memory to grow, [`Error::Damaged`], [`Error::Forked`]. Then nothing was
    /// sent.
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        let place = match self.place(message.len())? {
            Some(place) => place,
            None => match self.overflowing(message.len())? {
                Some(place) => place,
                None => return Ok(()),
            },
        };
        self.put(place, message);
        self.show();
        Ok(())
    }

    /// Sends a message if there is room now, whatever is to happen otherwise.
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::Full`].
    pub fn try_send(&mut self, message: &[u8]) -> Result<(), Error> {
        let place = self.place(message.len())?.ok_or(Error::Full)?;
        self.put(place, message);
        self.show();
        Ok(())
    }

    /// Sends a message once there is room, whatever is to happen otherwise.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::TimedOut`].
    pub fn send_timeout(
        &mut self,
        message: &[u8],
        timeout: impl Into<Timeout>,
    ) -> Result<(), Error> {
        let deadline = timeout.into().starting(Instant::now());
        let place = self.place_by(message.len(), deadline)?;
        self.put(place, message);
        self.show();
        Ok(())
    }

    /// Sends many at the price of one, as far as there is room for all: they are
    /// shown to the receiver at once, and it is woken once. Returns how many were
    /// sent: fewer than there are if some were thrown away under
    /// [`Overflow::DropNewest`].
    ///
    /// # Blocking
    /// As [`send`](Sender::send). Before it waits for room it shows what it has.
    ///
    /// # Errors
    /// As [`send`](Sender::send). Messages before the one that failed were sent.
    pub fn send_many<'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<usize, Error> {
        let mut sent = 0;
        let result = messages.into_iter().try_for_each(|message| {
            let place = match self.place(message.len())? {
                Some(place) => Some(place),
                None => {
                    self.show();
                    self.overflowing(message.len())?
                }
            };
            if let Some(place) = place {
                self.put(place, message);
                sent += 1;
            }
            Ok(())
        });
        self.show();
        result.map(|()| sent)
    }

    /// Room for a message of `length` bytes, to be made in place, without a copy.
    /// It is sent when it is [committed](Reservation::commit); if it is dropped,
    /// nothing was.
    ///
    /// # Blocking
    /// As [`send`](Sender::send).
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::Full`] also under
    /// [`Overflow::DropNewest`].
    pub fn reserve(&mut self, length: usize) -> Result<Reservation<'_>, Error> {
        let place = match self.place(length)? {
            Some(place) => place,
            None => self.overflowing(length)?.ok_or(Error::Full)?,
        };
        Ok(Reservation::new(self, place))
    }

    /// Waits until there is room for a message of `length` bytes, which a call that
    /// sends one then finds; for hosts whose signal handlers do not run by themselves.
    /// Before each sleep `goes_on` is asked, and a signal ends a sleep. False if it
    /// said no.
    ///
    /// # Blocking
    /// For at most `timeout`. A signal that comes between the question and the sleep
    /// ends none; so none takes longer than a second.
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::TimedOut`].
    pub fn wait_for_room(
        &mut self,
        length: usize,
        timeout: impl Into<Timeout>,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<bool, Error> {
        let deadline = timeout.into().starting(Instant::now());
        loop {
            if self.place(length)?.is_some() {
                return Ok(true);
            }
            if deadline.reached(Instant::now()) {
                return Err(Error::TimedOut);
            }
            if !goes_on() {
                return Ok(false);
            }
            // That is once: whoever waits for room looks after its receiver now and then.
            if self.sleep(length, deadline)?.is_some() {
                return Ok(true);
            }
        }
    }

    pub(super) fn memory(&self) -> &LaneMemory {
        self.producer.memory()
    }

    /// The same, for what was lent.
    ///
    /// # Panics
    /// In a fork, where it is not.
    #[inline]
    pub(super) fn memory_here(&self) -> &LaneMemory {
        assert!(self.guest.ground.is_here(), "{}", super::NOT_HERE);
        self.memory()
    }

    pub(super) fn commit(&mut self, length: usize) {
        self.memory_here();
        self.producer.finish(length as u64);
        self.show();
    }

    fn put(&mut self, place: Place, message: &[u8]) {
        self.producer.fill(place, message);
        self.producer.finish(message.len() as u64);
    }

    /// Makes visible what is finished, and wakes the receiver if it sleeps.
    #[inline]
    fn show(&mut self) {
        if self.producer.publish() {
            self.ring();
        }
    }

    #[inline]
    fn ring(&mut self) {
        if let Some(sleep) = self.ringer.ring(&self.bell) {
            self.wake(sleep);
        }
    }

    #[cold]
    fn wake(&self, sleep: Sleep) {
        match sleep {
            Sleep::Word => wake(&self.bell),
            Sleep::Link => {
                // Full is as rung as can be. Nobody there is found out in another
                // way, and no signal comes of it.
                if let Ok(link) = self.guest.link.get() {
                    shared::ring(link);
                }
            }
        }
    }

    /// Room, if there is any now.
    #[inline]
    fn place(&mut self, length: usize) -> Result<Option<Place>, Error> {
        self.check()?;
        self.unchecked += 1;
        if self.unchecked >= UNCHECKED {
            self.unchecked = 0;
            self.guest.ask()?;
        }
        if length as u64 > self.producer.longest() {
            return Err(Error::TooLarge {
                length,
                most: self.producer.longest() as usize,
            });
        }
        match self.producer.reserve(length as u64) {
            Ok(place) => Ok(Some(place)),
            Err(shortage) => self.explain(shortage),
        }
    }

    #[cold]
    fn explain(&mut self, shortage: Shortage) -> Result<Option<Place>, Error> {
        let what = match shortage {
            Shortage::Full => {
                // There may be something to read that is no message.
                self.ring();
                return Ok(None);
            }
            Shortage::Memory(error) => return Err(Error::Io(error)),
            Shortage::Refused => "the receiver has found damage and reads it no more",
            Shortage::Damaged(damage) => damage.0,
        };
        Err(Error::Damaged {
            lane: self.memory().lane(),
            peer: None,
            what,
        })
    }

    /// There is no room now. None if the message is thrown away.
    #[cold]
    fn overflowing(&mut self, length: usize) -> Result<Option<Place>, Error> {
        match self.overflow {
            Overflow::Block => self.place_by(length, Deadline::NEVER).map(Some),
            Overflow::Fail => Err(Error::Full),
            Overflow::DropNewest => {
                self.dropped += 1;
                Ok(None)
            }
        }
    }

    /// Sleeps until there is room.
    fn place_by(&mut self, length: usize, deadline: Deadline) -> Result<Place, Error> {
        loop {
            if let Some(place) = self.place(length)? {
                return Ok(place);
            }
            if deadline.reached(Instant::now()) {
                return Err(Error::TimedOut);
            }
            if let Some(place) = self.sleep(length, deadline)? {
                return Ok(place);
            }
        }
    }

    /// Sleeps once, until there may be room, unless there is some at the last look.
    fn sleep(&mut self, length: usize, deadline: Deadline) -> Result<Option<Place>, Error> {
        space::wait(self.memory().space());
        let place = self.place(length);
        if matches!(place, Ok(None)) {
            self.guest.sleep(self.memory().space(), deadline)?;
        }
        space::waited(self.memory().space());
        place
    }

    #[inline]
    fn check(&self) -> Result<(), Error> {
        self.guest.check()
    }
}

impl Guest {
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
        producer.memory().set_peer(std::process::id(), self.number);
        // Not so if somebody got on without a lock.
        Ok(change(State::Taken).then_some(producer))
    }

    /// Two loads.
    #[inline]
    fn check(&self) -> Result<(), Error> {
        if !self.ground.is_here() {
            return Err(Error::Forked);
        }
        self.watch.gone(&self.link).map_or(Ok(()), told)
    }

    /// Asks the system whether the receiver is there.
    #[cold]
    fn ask(&self) -> Result<(), Error> {
        self.watch.ask(&self.link).map_or(Ok(()), told)
    }

    /// Until somebody makes room, or the receiver is gone. May return before.
    fn sleep(&self, space: &AtomicU32, deadline: Deadline) -> Result<(), Error> {
        let word = self.watch.word();
        let nap = Deadline::at(Instant::now() + self.watch.nap()).min(deadline);
        // Until the others are awake: if this one is killed before, the kernel wakes
        // the next. Nobody else sleeps on the other word.
        let _pending = word.map(|(word, value)| Pending::on(word, value));
        let slept = match word {
            Some(word) => {
                self.check()?;
                shared::sleep_on_two([(space, space::WAITS), word], nap)
            }
            None => Err(std::io::ErrorKind::Unsupported.into()),
        };
        if slept.is_err() {
            shared::sleep(space, space::WAITS, nap);
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

fn told(gone: Gone) -> Result<(), Error> {
    Err(match gone {
        Gone::Closed => Error::Closed,
        Gone::Died => Error::ReceiverDead,
        Gone::Nonsense => Error::Invalid("what its receiver says of itself makes no sense".into()),
    })
}

impl Drop for Sender {
    /// What was sent will be received.
    fn drop(&mut self) {
        let ground = &self.guest.ground;
        // A fork's copy is nobody's.
        if !ground.is_here() {
            return;
        }
        let lane = self.memory().lane();
        // First: afterwards it may be that of another sender of this process.
        if let Ok(file) = ground.file() {
            shared::unlock(file, lane_lock(lane));
        }
        ground.set_state(lane, State::Left);
        ground.claims().fetch_add(1, Ordering::AcqRel);
        self.ring();
    }
}
