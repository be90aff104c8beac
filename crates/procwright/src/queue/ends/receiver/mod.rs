//! The side that receives.

mod claims;
mod guests;
mod options;
mod sleep;
mod take_over;
mod turns;
mod view;
mod waiting;
mod waker;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use super::ground::Ground;
use super::life::Life;
use crate::liveness::nonce;
use crate::queue::bell::Sleeper;
use crate::queue::lane::Place;
use crate::queue::{Error, Invitation, Sender};
use crate::sys::shared::{self, Word};
use crate::sys::thread::has_several_processors;
use crate::time::{Deadline, Timeout};
use guests::Guests;
pub use options::Options;
use take_over::Held;
use turns::Lane;
pub use view::{Batch, View};
pub use waker::Waker;

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
    ground: Arc<Ground>,
    /// Its name. Before its life: who opens the name when it is gone finds no queue
    /// that is closed.
    _held: Option<Held>,
    life: Life,
    guests: Guests,
    /// Those whose lanes are to be taken back yet.
    gone: Vec<u32>,
    lanes: Vec<Lane>,
    /// The one that is read now, and how many messages it may have yet before it
    /// is the next one's turn.
    turn: usize,
    left: u32,
    bell: Word<AtomicU32>,
    sleeper: Sleeper,
    claims: Word<AtomicU32>,
    /// What they were when the states were looked at.
    claimed: Option<u32>,
    /// How often there was a look since the guests were attended to, and when that was,
    /// as the last tick of the clock.
    looks: u32,
    attended: Duration,
    /// How many looks it is worth to spend before a sleep.
    patience: u32,
    /// Whether somebody sleeps on our descriptor.
    is_watched: bool,
    is_armed: bool,
    /// Which lanes are in `lanes`.
    is_open: Vec<bool>,
}

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
    fn assemble(ground: Arc<Ground>, life: Life, guests: Guests, held: Option<Held>) -> Receiver {
        Receiver {
            _held: held,
            life,
            guests,
            gone: Vec::new(),
            lanes: Vec::new(),
            turn: 0,
            left: turns::TURN,
            bell: ground.bell(),
            sleeper: Sleeper::after(nonce()),
            claims: ground.claims(),
            claimed: None,
            looks: 0,
            attended: shared::last_tick(),
            // Looking takes from a sender on the same processor. But one may be all
            // that this thread may use, and the sender be on another: it finds out.
            patience: if has_several_processors() {
                sleep::PATIENCE
            } else {
                sleep::LEAST_PATIENCE
            },
            is_watched: false,
            is_armed: false,
            is_open: vec![false; ground.geometry().lanes() as usize],
            ground,
        }
    }

    fn nonce(&self) -> u64 {
        self.ground.header.nonce
    }

    fn file(&self) -> Result<BorrowedFd<'_>, Error> {
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

    /// Receives what one sender has sent, one message and at most `most`, without a copy;
    /// one, too, if `most` is 0.
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
    fn is_here(&self) -> bool {
        self.ground.is_here()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.guests.as_fd()
    }

    /// Whether nobody is there who could send.
    fn is_closed(&self) -> bool {
        self.guests.is_empty()
    }

    #[inline]
    fn check(&self) -> Result<(), Error> {
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
    fn bytes(&self, place: Place) -> &[u8] {
        assert!(self.ground.is_here(), "{}", crate::queue::ends::NOT_HERE);
        let consumer = &self.lanes[self.turn].consumer;
        let mail = consumer.mail(place);
        mail.unwrap_or_else(|| consumer.memory().bytes(place))
    }

    /// What was handed out last was not received.
    fn step_back(&mut self) {
        if self.ground.is_here() {
            self.lanes[self.turn].consumer.step_back();
            // It is this lane's turn again, also if that was over.
            self.left += 1;
        }
    }

    /// What was handed out has been received.
    #[inline]
    fn release(&mut self) {
        // What a fork drops is not read by who it was forked from.
        if self.ground.is_here() {
            self.lanes[self.turn].release();
        }
    }
}
