//! The side that sends.

mod guest;
mod reservation;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use super::memory::LaneMemory;
use crate::queue::bell::{Ringer, Sleep, space};
use crate::queue::lane::{Place, Producer, Shortage};
use crate::queue::{Error, Invitation};
use crate::sys::robust::wake;
use crate::sys::shared::Word;
use crate::sys::thread::has_several_processors;
use crate::time::{Deadline, Timeout};
use guest::Guest;
pub use reservation::Reservation;

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
        Sender::of(Arc::new(Guest::invited(invitation)?))
    }

    /// Takes a place at the queue of that name, which this user's
    /// [receiver](super::Receiver::open) has made. Whatever that one does meanwhile: it
    /// may be stopped.
    ///
    /// As long as this sender is there, the queue is: another receiver that opens the
    /// name when this one has died takes it over.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if there is none, or nobody has it any more;
    /// [`Error::ReceiverDead`] if there is one, and its receiver has died, also while
    /// another is about to take over;
    /// [`Error::Io`] of kind `PermissionDenied` if the directory of the names is
    /// another user's, or others may enter it; [`Error::BadName`], and as
    /// [`attach`](Sender::attach).
    pub fn open(name: &str) -> Result<Sender, Error> {
        Sender::of(Arc::new(Guest::by_name(name)?))
    }

    /// Another one for the same queue, in this process.
    ///
    /// # Errors
    /// As [`attach`](Sender::attach); [`Error::Forked`].
    pub fn try_clone(&self) -> Result<Sender, Error> {
        self.check()?;
        let mut new = Sender::of(Arc::clone(&self.guest))?;
        new.overflow = self.overflow;
        Ok(new)
    }

    fn of(guest: Arc<Guest>) -> Result<Sender, Error> {
        let mut producer = guest.claim()?;
        if has_several_processors() {
            producer.be_patient();
        }
        Ok(Sender {
            producer,
            bell: guest.ground.bell(),
            guest,
            ringer: Ringer::new(),
            overflow: Overflow::default(),
            dropped: 0,
            unchecked: 0,
        })
    }

    /// What happens when there is no room. [`Overflow::Block`] at first.
    pub fn set_overflow(&mut self, overflow: Overflow) {
        self.overflow = overflow;
    }

    /// This lane grows no further than to blocks of so many bytes; what is longer
    /// is [too large](Error::TooLarge) from then on, if it has not grown already. At
    /// first the queue's limit holds.
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
        if self.sends_short(message) {
            return Ok(());
        }
        self.send_any(message)
    }

    /// Sends a short message if nothing is in its way.
    #[inline]
    fn sends_short(&mut self, message: &[u8]) -> bool {
        let is_sent = self.unchecked + 1 < UNCHECKED
            && self.guest.is_well()
            && self.producer.send_short(message);
        if is_sent {
            self.unchecked += 1;
            self.ring();
        }
        is_sent
    }

    fn send_any(&mut self, message: &[u8]) -> Result<(), Error> {
        let place = match self.place(message.len(), self.waits())? {
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
    /// # Blocking
    /// It does not sleep. Before its lane takes more than 2 MiB it looks for some 50 µs
    /// whether the receiver makes room.
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::Full`].
    pub fn try_send(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.sends_short(message) {
            return Ok(());
        }
        let place = self.place(message.len(), false)?.ok_or(Error::Full)?;
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
        if self.sends_short(message) {
            return Ok(());
        }
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
            let place = match self.place(message.len(), self.waits())? {
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
        let place = match self.place(length, self.waits())? {
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
            let may_wait = !deadline.reached(Instant::now());
            if self.place(length, may_wait)?.is_some() {
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
        assert!(
            self.guest.ground.is_here(),
            "{}",
            crate::queue::ends::NOT_HERE
        );
        self.memory()
    }

    pub(super) fn commit(&mut self, place: Place, length: usize) {
        self.memory_here();
        self.producer.finish(place, length as u64);
        self.show();
    }

    fn put(&mut self, place: Place, message: &[u8]) {
        self.producer.fill(place, message);
        self.producer.finish(place, place.length);
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
            Sleep::Link => self.guest.ring(),
        }
    }

    /// Whether a call that says nothing of time waits for room.
    fn waits(&self) -> bool {
        self.overflow == Overflow::Block
    }

    /// Room, if there is any now, or in a moment.
    #[inline]
    fn place(&mut self, length: usize, may_wait: bool) -> Result<Option<Place>, Error> {
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
        match self.producer.reserve(length as u64, may_wait) {
            Ok(place) => Ok(Some(place)),
            Err(shortage) => self.explain(shortage, length, may_wait),
        }
    }

    #[cold]
    fn explain(
        &mut self,
        shortage: Shortage,
        length: usize,
        may_wait: bool,
    ) -> Result<Option<Place>, Error> {
        let what = match shortage {
            // Once: there is nothing else to tell then.
            Shortage::Untold => {
                self.ring();
                return self.place(length, may_wait);
            }
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
            let may_wait = !deadline.reached(Instant::now());
            if let Some(place) = self.place(length, may_wait)? {
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
        let place = self.place(length, false);
        if matches!(place, Ok(None)) {
            let space = self.memory().space();
            self.guest.sleep(space, space::WAITS, deadline)?;
        }
        space::waited(self.memory().space());
        place
    }

    #[inline]
    fn check(&self) -> Result<(), Error> {
        self.guest.check()
    }
}

impl Drop for Sender {
    /// What was sent will be received.
    fn drop(&mut self) {
        // A fork's copy is nobody's.
        if self.guest.ground.is_here() {
            self.guest.leave(self.memory().lane());
            self.ring();
        }
    }
}
