//! The side that receives.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::bell::{Sleep, Sleeper, space};
use super::ground::Ground;
use super::guests::Guests;
use super::lane::{Consumer, Damage, Place};
use super::life::Life;
use super::memory::LaneMemory;
use super::take_over::Held;
use super::view::{Batch, View};
use super::{Error, Invitation, Options, Sender};
use crate::liveness::nonce;
use crate::sys::robust::wake;
use crate::sys::shared::{self, Word};
use crate::time::{Deadline, Timeout};

/// Receives what the [`Sender`]s of a queue send, each one's messages in their
/// order.
///
/// If it is dropped, senders are told that the queue is [closed](Error::Closed). If
/// its process dies, they are told that it is [dead](Error::ReceiverDead), until
/// another receiver has [taken over](Receiver::take_over): then they go on where they
/// were.
///
/// It is for one thread at a time.
#[derive(Debug)]
pub struct Receiver {
    pub(super) ground: Arc<Ground>,
    /// Its name. Before its life: who opens the name when it is gone finds no queue
    /// that is closed.
    _held: Option<Held>,
    life: Life,
    pub(super) guests: Guests,
    /// Those whose lanes are to be taken back yet.
    pub(super) gone: Vec<u32>,
    pub(super) lanes: Vec<Lane>,
    /// The one that is read now, and how many messages it may have yet before it
    /// is the next one's turn.
    pub(super) turn: usize,
    left: u32,
    bell: Word<AtomicU32>,
    sleeper: Sleeper,
    claims: Word<AtomicU32>,
    /// What they were when the states were looked at.
    pub(super) claimed: Option<u32>,
    /// How often there was a look since the guests were attended to, and when that was,
    /// as the last tick of the clock.
    pub(super) looks: u32,
    pub(super) attended: Duration,
    /// How many looks it is worth to spend before a sleep.
    patience: u32,
    /// Whether somebody sleeps on our descriptor.
    is_watched: bool,
    pub(super) is_armed: bool,
    /// Which lanes are in `lanes`.
    pub(super) is_open: Vec<bool>,
}

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
const TURN: u32 = 256;

/// No place.
const NOWHERE: u64 = u64::MAX;

/// After so many looks the system is asked who is there. Where there is nothing, also
/// after so long: who looks once a second would take an hour for so many.
const LOOKS: u32 = 4096;
const UNATTENDED: Duration = NAP;

/// Most sleeps are short, and are woken by a word, for less. Whether a sender is
/// killed just when it was about to wake us is told by its link: so nobody sleeps
/// on the word for longer.
const NAP: Duration = Duration::from_millis(10);

/// How many looks at a lane are spent before a sleep at most: some microseconds.
const PATIENCE: u32 = 2000;
/// So many of them follow each other at once.
const QUICK: u32 = 400;
const LEAST_PATIENCE: u32 = 100;

impl Receiver {
    /// Makes a queue with the usual [`Options`].
    ///
    /// # Errors
    /// [`Error::Unsupported`]; [`Error::Io`] when there is no memory or descriptor
    /// left.
    pub fn new() -> Result<Receiver, Error> {
        Options::new().create()
    }

    /// One that has read nothing yet.
    pub(super) fn assemble(
        ground: Arc<Ground>,
        life: Life,
        guests: Guests,
        held: Option<Held>,
    ) -> Receiver {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Receiver {
            _held: held,
            life,
            guests,
            gone: Vec::new(),
            lanes: Vec::new(),
            turn: 0,
            left: TURN,
            bell: ground.bell(),
            sleeper: Sleeper::after(nonce()),
            claims: ground.claims(),
            claimed: None,
            looks: 0,
            attended: shared::last_tick(),
            // Looking takes from a sender on the same processor. But one may be all
            // that this thread may use, and the sender be on another: it finds out.
            patience: if cpus > 1 { PATIENCE } else { LEAST_PATIENCE },
            is_watched: false,
            is_armed: false,
            is_open: vec![false; ground.geometry().lanes() as usize],
            ground,
        }
    }

    pub(super) fn nonce(&self) -> u64 {
        self.ground.header.nonce
    }

    pub(super) fn file(&self) -> Result<BorrowedFd<'_>, Error> {
        Ok(self.ground.file()?)
    }

    /// A place at this queue for one process, to be sent there or inherited.
    ///
    /// # Errors
    /// When no descriptor is left; [`Error::Forked`].
    pub fn invite(&mut self) -> Result<Invitation, Error> {
        self.check()?;
        self.see_who_has_left();
        // With an open file description of its own: ours has the lock that says that
        // there is a receiver, and whoever has it would keep the lock when we are gone.
        let file = shared::reopen(self.ground.file()?)?;
        let guest = self.ground.number()?;
        let link = self.guests.add(guest)?;
        Ok(Invitation {
            file,
            link,
            nonce: self.nonce(),
            guest,
        })
    }

    /// A sender in this process.
    ///
    /// # Errors
    /// As [`invite`](Receiver::invite) and [`Sender::attach`].
    pub fn sender(&mut self) -> Result<Sender, Error> {
        Sender::attach(self.invite()?)
    }

    /// Receives a message.
    ///
    /// # Blocking
    /// Until there is one.
    ///
    /// # Errors
    /// [`Error::Closed`] if there will be none: every sender is gone, and no
    /// invitation is left. [`Error::Damaged`] once for a lane that is not read any
    /// more. [`Error::Io`] when there is no memory left to map a lane.
    /// [`Error::Forked`].
    pub fn recv(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.recv_view()?.to_vec())
    }

    /// Receives a message if there is one.
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv); [`Error::Empty`].
    #[inline]
    pub fn try_recv(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.try_recv_view()?.to_vec())
    }

    /// Receives a message that comes within the time.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv); [`Error::TimedOut`].
    pub fn recv_timeout(&mut self, timeout: impl Into<Timeout>) -> Result<Vec<u8>, Error> {
        Ok(self.recv_view_timeout(timeout)?.to_vec())
    }

    /// Receives a message without a copy: it is read where it is, and received
    /// when the view is dropped.
    ///
    /// # Blocking
    /// As [`recv`](Receiver::recv).
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv).
    #[inline]
    pub fn recv_view(&mut self) -> Result<View<'_>, Error> {
        let mut found = self.next_of_turn();
        if found.is_none() && self.is_worth_a_look() {
            found = self.next_of_turn();
        }
        if let Some(place) = found {
            return Ok(View::new(self, place));
        }
        self.recv_in_time()
    }

    fn recv_in_time(&mut self) -> Result<View<'_>, Error> {
        let place = self.wait(Deadline::NEVER)?;
        Ok(View::new(self, place))
    }

    /// The same if it comes within the time.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// As [`recv_timeout`](Receiver::recv_timeout).
    pub fn recv_view_timeout(&mut self, timeout: impl Into<Timeout>) -> Result<View<'_>, Error> {
        let deadline = timeout.into().starting(Instant::now());
        let place = self.wait(deadline)?;
        Ok(View::new(self, place))
    }

    /// The same if there is one now.
    ///
    /// # Errors
    /// As [`try_recv`](Receiver::try_recv).
    #[inline]
    pub fn try_recv_view(&mut self) -> Result<View<'_>, Error> {
        if let Some(place) = self.next_of_turn() {
            return Ok(View::new(self, place));
        }
        if self.is_quiet() {
            return Err(Error::Empty);
        }
        self.try_recv_anything()
    }

    /// Whether there is nothing, and nothing else to be seen to: for who looks all the
    /// time.
    #[inline]
    fn is_quiet(&mut self) -> bool {
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

    /// For who looks all the time and never sleeps: this clock costs no system call,
    /// wherever there is any.
    fn is_unattended(&self) -> bool {
        shared::last_tick().saturating_sub(self.attended) >= UNATTENDED
    }

    fn try_recv_anything(&mut self) -> Result<View<'_>, Error> {
        self.disarm();
        match self.look()? {
            Some(place) => Ok(View::new(self, place)),
            None => {
                let place = self.look_once_more()?;
                Ok(View::new(self, place))
            }
        }
    }

    /// Receives what one sender has sent, one message and at most `most`, without a copy.
    /// They are received when the batch is dropped: if this process dies before,
    /// all of them are not.
    ///
    /// # Blocking
    /// Until there is one.
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv).
    pub fn recv_many(&mut self, most: usize) -> Result<Batch<'_>, Error> {
        let mut places = vec![self.wait(Deadline::NEVER)?];
        while places.len() < most {
            // Damage is for the next call: it is found again.
            match self.lanes[self.turn].consumer.next() {
                Ok(Some(place)) => places.push(place),
                _ => break,
            }
        }
        let more = u32::try_from(places.len() - 1).unwrap_or(u32::MAX);
        self.left = self.left.saturating_sub(more);
        Ok(Batch::new(self, places))
    }

    /// A descriptor that is readable when there may be something to receive: for
    /// event loops. Whenever it is, call [`try_recv`](Receiver::try_recv) until
    /// that says that the queue is empty, or closed; from then on the descriptor
    /// tells of the next message.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::Damaged`] or [`Error::Io`] for what was found
    /// on the way.
    pub fn readiness_fd(&mut self) -> Result<BorrowedFd<'_>, Error> {
        self.check()?;
        self.is_watched = true;
        // What is there already is told of, too.
        self.guests.ring_ourselves();
        Ok(self.guests.as_fd())
    }

    /// Whether this is the process that made it.
    pub(super) fn is_here(&self) -> bool {
        self.ground.is_here()
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.guests.as_fd()
    }

    /// Whether nobody is there who could send.
    pub(super) fn is_closed(&self) -> bool {
        self.guests.is_empty()
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

    #[inline]
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.ground.is_here() {
            true => Ok(()),
            false => Err(Error::Forked),
        }
    }

    /// The bytes of a message of the lane that is read now.
    ///
    /// # Panics
    /// In a fork, where they are not.
    #[inline]
    pub(super) fn bytes(&self, place: Place) -> &[u8] {
        assert!(self.ground.is_here(), "{}", super::NOT_HERE);
        let consumer = &self.lanes[self.turn].consumer;
        let mail = consumer.mail(place);
        mail.unwrap_or_else(|| consumer.memory().bytes(place))
    }

    /// What was handed out has been received.
    #[inline]
    pub(super) fn release(&mut self) {
        // What a fork drops is not read by who it was forked from.
        if self.ground.is_here() {
            self.lanes[self.turn].release();
        }
    }

    /// The next message of the lane whose turn it is, if nothing else is to be seen
    /// to: once in a turn, and when the lane is empty, all else is.
    #[inline]
    fn next_of_turn(&mut self) -> Option<Place> {
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
    fn look(&mut self) -> Result<Option<Place>, Error> {
        self.check()?;
        self.life.keep();
        self.looks += 1;
        if self.looks >= LOOKS {
            self.attend(Deadline::at(Instant::now()))?;
        }
        self.look_at_lanes()
    }

    #[inline]
    fn look_at_lanes(&mut self) -> Result<Option<Place>, Error> {
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

    /// Sleeps until there is a message.
    fn wait(&mut self, deadline: Deadline) -> Result<Place, Error> {
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
    fn is_worth_a_look(&mut self) -> bool {
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
    fn look_once_more(&mut self) -> Result<Place, Error> {
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
    fn release(&mut self) {
        if !self.is_refused && self.consumer.release() {
            let space = self.consumer.memory().space();
            if space::made(space) {
                wake(space);
            }
        }
    }

    /// Whether it is worth to look.
    #[inline]
    fn has_more(&self) -> bool {
        !self.is_refused && self.consumer.has_more()
    }

    /// Whether nobody will send or receive here any more.
    fn is_over(&self) -> bool {
        self.is_left && (self.is_refused || self.consumer.is_at_end())
    }
}
