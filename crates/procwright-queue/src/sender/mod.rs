//! The side that sends.
//!
//! Layers, lowest first: `link`; `monitor`; `process`; [`Sender`] here; `reservation` and
//! `opening`.

mod link;
mod monitor;
mod opening;
mod process;
mod reservation;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use crate::error::Error;
use crate::invitation::Invitation;
use crate::lane::{LaneWriter, MessageSpan, ReserveError};
use crate::names::QueueName;
use crate::shm::LaneMapping;
use crate::wakeup::{Asleep, WakeOnce, space};
pub use opening::Opening;
use process::SenderProcess;
use procwright_os::robust::wake;
use procwright_os::shared_memory::RegionWord;
use procwright_os::thread::has_several_processors;
use procwright_os::time::{Deadline, Timeout};
pub use reservation::Reservation;

/// Fate of a message that finds no room, when its lane may not grow further.
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

/// Sends messages to a queue's [`Receiver`](crate::Receiver).
///
/// Each has a lane of its own, so senders never wait for each other, and a message of one
/// that is stopped or killed in the middle is not there at all. Messages of one sender are
/// received in the order in which they were sent; between senders there is no order.
///
/// A sender is for one thread at a time. Another thread needs another sender, from
/// [`try_clone`](Sender::try_clone).
#[doc(alias = "mqd_t")]
#[derive(Debug)]
pub struct Sender {
    writer: LaneWriter<LaneMapping>,
    process: Arc<SenderProcess>,
    sleep_word: RegionWord<AtomicU32>,
    wake_once: WakeOnce,
    overflow: Overflow,
    dropped: u64,
    /// Number of messages since the system was asked for the receiver.
    since_asked: u32,
}

/// Number of messages after which the system is asked whether the receiver is there: the
/// kernel may have failed to mark its word.
const ASK_EVERY: u32 = 4096;

impl Sender {
    /// Takes a lane of the queue that the invitation is to.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no queue, [`Error::WrongVersion`], [`Error::NoLane`],
    /// [`Error::ReceiverDead`], [`Error::Closed`], [`Error::Unsupported`], or [`Error::Io`]
    /// when there is no memory or descriptor left.
    pub fn attach(invitation: Invitation) -> Result<Sender, Error> {
        Sender::claim_lane(Arc::new(SenderProcess::invited(invitation)?))
    }

    /// Takes a lane of the queue of that name, which this user's
    /// [receiver](crate::Receiver::open) has made. The receiver need not do anything for
    /// it; it may even be stopped.
    ///
    /// The queue exists as long as this sender does: another receiver that opens the name
    /// when this one has died takes it over.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if there is none, or no process has it any more;
    /// [`Error::ReceiverDead`] if there is one, and its receiver has died, also while
    /// another is about to take over; [`Error::Io`] of kind `PermissionDenied` if the
    /// directory of the names is another user's, or others may enter it;
    /// [`Error::BadName`], and as [`attach`](Sender::attach).
    #[doc(alias = "mq_open")]
    pub fn open(name: &str) -> Result<Sender, Error> {
        Sender::claim_lane(Arc::new(SenderProcess::named(&QueueName::new(name)?)?))
    }

    /// Makes another sender for the same queue, in this process.
    ///
    /// # Errors
    /// As [`attach`](Sender::attach); [`Error::Forked`].
    pub fn try_clone(&self) -> Result<Sender, Error> {
        self.check()?;
        let mut new = Sender::claim_lane(Arc::clone(&self.process))?;
        new.overflow = self.overflow;
        Ok(new)
    }

    fn claim_lane(process: Arc<SenderProcess>) -> Result<Sender, Error> {
        let writer = process.claim_lane()?;
        Ok(Sender::with_lane(process, writer))
    }

    fn with_lane(process: Arc<SenderProcess>, mut writer: LaneWriter<LaneMapping>) -> Sender {
        if has_several_processors() {
            writer.enable_spinning();
        }
        Sender {
            writer,
            sleep_word: process.queue.sleep_word(),
            process,
            wake_once: WakeOnce::new(),
            overflow: Overflow::default(),
            dropped: 0,
            since_asked: 0,
        }
    }

    /// Sets what happens when there is no room. [`Overflow::Block`] at first.
    pub fn set_overflow(&mut self, overflow: Overflow) {
        self.overflow = overflow;
    }

    /// Sets the size of the largest block that this lane grows to; longer messages are [too
    /// large](Error::TooLarge) from then on, if it has not grown already. At first the
    /// queue's limit holds.
    pub fn set_limit(&mut self, bytes: usize) {
        self.writer.set_limit(bytes as u64);
    }

    /// Number of messages that were thrown away under [`Overflow::DropNewest`].
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Sends a message. When this returns, it will be received even if this process is
    /// killed.
    ///
    /// # Blocking
    /// While there is no room, under [`Overflow::Block`].
    ///
    /// # Errors
    /// [`Error::ReceiverDead`], [`Error::Closed`], [`Error::TooLarge`], [`Error::Full`]
    /// under [`Overflow::Fail`], [`Error::Io`] when there is no memory to grow,
    /// [`Error::Damaged`], [`Error::Forked`]. Then nothing was sent.
    #[doc(alias = "mq_send")]
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.try_send_short(message) {
            return Ok(());
        }
        self.send_any(message)
    }

    /// Sends a short message if there is room at once and nothing else to do.
    #[inline]
    fn try_send_short(&mut self, message: &[u8]) -> bool {
        let is_sent = self.since_asked + 1 < ASK_EVERY
            && self.process.is_ready()
            && self.writer.send_short(message);
        if is_sent {
            self.since_asked += 1;
            self.wake_if_asleep();
        }
        is_sent
    }

    fn send_any(&mut self, message: &[u8]) -> Result<(), Error> {
        let span = match self.span(message.len(), self.blocks())? {
            Some(span) => span,
            None => match self.overflow_span(message.len())? {
                Some(span) => span,
                None => return Ok(()),
            },
        };
        self.write(span, message);
        self.publish();
        Ok(())
    }

    /// Sends a message if there is room now, whatever [`Overflow`] says.
    ///
    /// # Blocking
    /// This call does not sleep. Before its lane takes more than 2 MiB it looks for some 50
    /// µs whether the receiver makes room.
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::Full`].
    #[doc(alias = "O_NONBLOCK")]
    pub fn try_send(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.try_send_short(message) {
            return Ok(());
        }
        let span = self.span(message.len(), false)?.ok_or(Error::Full)?;
        self.write(span, message);
        self.publish();
        Ok(())
    }

    /// Sends a message once there is room, whatever [`Overflow`] says.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::TimedOut`].
    #[doc(alias = "mq_timedsend")]
    pub fn send_timeout(
        &mut self,
        message: &[u8],
        timeout: impl Into<Timeout>,
    ) -> Result<(), Error> {
        if self.try_send_short(message) {
            return Ok(());
        }
        let deadline = timeout.into().starting(Instant::now());
        let span = self.span_by(message.len(), deadline, || true)?;
        // A span is always there: no sleep was refused.
        let span = span.ok_or(Error::TimedOut)?;
        self.write(span, message);
        self.publish();
        Ok(())
    }

    /// Sends many messages at the price of one, as far as there is room for all: they are
    /// shown to the receiver at once, and it is woken once. Returns the number of messages
    /// sent: fewer than were given if some were thrown away under [`Overflow::DropNewest`].
    ///
    /// # Blocking
    /// As [`send`](Sender::send). Before a wait for room the messages so far are shown.
    ///
    /// # Errors
    /// As [`send`](Sender::send). Messages before the one that failed were sent.
    pub fn send_many<'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<usize, Error> {
        let mut sent = 0;
        let result = messages.into_iter().try_for_each(|message| {
            let span = match self.span(message.len(), self.blocks())? {
                Some(span) => Some(span),
                None => {
                    self.publish();
                    self.overflow_span(message.len())?
                }
            };
            if let Some(span) = span {
                self.write(span, message);
                sent += 1;
            }
            Ok(())
        });
        self.publish();
        result.map(|()| sent)
    }

    /// Waits until there is room for a message of `length` bytes, which a call that sends
    /// one then finds; for hosts whose signal handlers do not run by themselves. Before
    /// each sleep `goes_on` is asked, and a signal ends a sleep. Returns false if the
    /// answer was false.
    ///
    /// # Blocking
    /// For at most `timeout`. A signal that comes between the question and the sleep ends
    /// none; so none takes longer than a second.
    ///
    /// # Errors
    /// As [`send`](Sender::send); [`Error::TimedOut`].
    pub fn wait_for_room(
        &mut self,
        length: usize,
        timeout: impl Into<Timeout>,
        goes_on: impl FnMut() -> bool,
    ) -> Result<bool, Error> {
        let deadline = timeout.into().starting(Instant::now());
        Ok(self.span_by(length, deadline, goes_on)?.is_some())
    }

    pub(super) fn memory(&self) -> &LaneMapping {
        self.writer.memory()
    }

    /// The lane's memory, for a reservation.
    ///
    /// # Panics
    /// In a fork, where the lane is not mapped.
    #[inline]
    pub(super) fn memory_checked(&self) -> &LaneMapping {
        self.process.queue.assert_not_forked();
        self.memory()
    }

    fn write(&mut self, span: MessageSpan, message: &[u8]) {
        self.writer.fill(span, message);
        self.writer.finish(span, span.length);
    }

    /// Makes visible what is finished, and wakes the receiver if it sleeps.
    #[inline]
    fn publish(&mut self) {
        if self.writer.publish() {
            self.wake_if_asleep();
        }
    }

    #[inline]
    fn wake_if_asleep(&mut self) {
        if let Some(sleep) = self.wake_once.wake_needed(&self.sleep_word) {
            self.wake(sleep);
        }
    }

    #[cold]
    fn wake(&self, how: Asleep) {
        match how {
            Asleep::Word => wake(&self.sleep_word),
            Asleep::Descriptor => self.process.ring(),
        }
    }

    /// Returns whether a call without a timeout waits for room.
    fn blocks(&self) -> bool {
        self.overflow == Overflow::Block
    }

    /// Room for a message, if there is any now, or in a moment.
    #[inline]
    fn span(&mut self, length: usize, may_wait: bool) -> Result<Option<MessageSpan>, Error> {
        self.check()?;
        self.since_asked += 1;
        if self.since_asked >= ASK_EVERY {
            self.since_asked = 0;
            self.process.ask_system()?;
        }
        if length as u64 > self.writer.longest() {
            return Err(Error::TooLarge {
                length,
                most: self.writer.longest() as usize,
            });
        }
        match self.writer.reserve(length as u64, may_wait) {
            Ok(span) => Ok(Some(span)),
            Err(shortage) => self.no_room(shortage, length, may_wait),
        }
    }

    #[cold]
    fn no_room(
        &mut self,
        shortage: ReserveError,
        length: usize,
        may_wait: bool,
    ) -> Result<Option<MessageSpan>, Error> {
        let what = match shortage {
            // The second try finds nothing more to announce.
            ReserveError::WakeFirst => {
                self.wake_if_asleep();
                return self.span(length, may_wait);
            }
            ReserveError::Full => {
                // The lane may have a skip that the receiver has to read.
                self.wake_if_asleep();
                return Ok(None);
            }
            ReserveError::OutOfMemory(error) => return Err(Error::Io(error)),
            ReserveError::Refused => "the receiver has found damage and reads it no more",
            ReserveError::Damaged(damage) => damage.0,
        };
        Err(Error::Damaged {
            lane: self.memory().lane(),
            peer: None,
            what,
        })
    }

    /// Does what [`Overflow`] says. None if the message is thrown away.
    #[cold]
    fn overflow_span(&mut self, length: usize) -> Result<Option<MessageSpan>, Error> {
        match self.overflow {
            Overflow::Block => self.span_by(length, Deadline::NEVER, || true),
            Overflow::Fail => Err(Error::Full),
            Overflow::DropNewest => {
                self.dropped += 1;
                Ok(None)
            }
        }
    }

    /// Room for a message, after as many sleeps as that takes. None if `may_sleep`, which
    /// is asked before each sleep, says no.
    ///
    /// # Errors
    /// As [`send_timeout`](Sender::send_timeout).
    fn span_by(
        &mut self,
        length: usize,
        deadline: Deadline,
        mut may_sleep: impl FnMut() -> bool,
    ) -> Result<Option<MessageSpan>, Error> {
        loop {
            let may_wait = !deadline.reached(Instant::now());
            if let Some(span) = self.span(length, may_wait)? {
                return Ok(Some(span));
            }
            if deadline.reached(Instant::now()) {
                return Err(Error::TimedOut);
            }
            if !may_sleep() {
                return Ok(None);
            }
            if let Some(span) = self.sleep(length, deadline)? {
                return Ok(Some(span));
            }
        }
    }

    /// Sleeps once, until there may be room, unless the last look finds some.
    fn sleep(&mut self, length: usize, deadline: Deadline) -> Result<Option<MessageSpan>, Error> {
        space::announce_wait(self.memory().space());
        let span = self.span(length, false);
        if matches!(span, Ok(None)) {
            let space = self.memory().space();
            self.process.sleep(space, space::WAITING, deadline)?;
        }
        space::end_wait(self.memory().space());
        span
    }

    #[inline]
    fn check(&self) -> Result<(), Error> {
        self.process.check()
    }
}

impl Drop for Sender {
    /// Leaves the lane. Messages in it will be received.
    fn drop(&mut self) {
        // A fork has a copy that owns nothing.
        if self.process.queue.is_here() {
            self.process.release_lane(&self.writer);
            self.wake_if_asleep();
        }
    }
}
