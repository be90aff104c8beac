//! From a pipe into memory: one state machine that knows no thread and never
//! blocks on its target.
//!
//! [`Drain`] moves bytes out of one output pipe, [`Feed`] moves bytes into the
//! program's stdin. Neither ever waits: a step that cannot go on says what it
//! needs, and a driver waits for that. The [`Inline`] driver does so on the
//! caller's thread, [`Pump`] on one for all streams that are
//! handed out.

mod blocked;
mod budget;
mod copies;
mod feed;
mod inline;
mod keys;
mod load;
mod merge;
mod meter;
mod pump;
mod side;
mod store;
mod typist;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::spool::Memory;
use crate::sys::fork::Kept;
use crate::sys::pipe::{self, FullProbe};
use crate::sys::pty;

pub(crate) use blocked::Blocked;
pub(crate) use budget::Grant;
pub(crate) use copies::{Chunk, Copies};
pub(crate) use feed::{Feed, Input};
pub use inline::{Flow, Segment};
pub(crate) use inline::{Inline, Turn};
pub(crate) use keys::Keys;
pub(crate) use merge::{Half, Header, Tally};
pub(crate) use meter::Gauge;
use meter::Meter;
pub(crate) use pump::{Pump, Taken};
use store::Room;
pub(crate) use store::Store;
pub(crate) use typist::Typist;

/// The largest single read. Between 64 and 256 KiB nothing changes in speed;
/// the size of the largest pipe that we ask for saves calls.
const READ: usize = 256 * 1024;

/// What a pipe is grown to once it carries volume. More brings nothing to
/// writers of 64 KiB and takes from a budget that all programs of a user share.
pub(crate) const VOLUME_CAPACITY: usize = 256 * 1024;

/// What a step found.
#[derive(Debug)]
pub(crate) enum Step {
    /// Bytes were moved; there may be more.
    Moved,
    /// The pipe is empty: wait for it to become readable.
    Empty,
    /// A consumer of copies has no room: wait for the wake-up.
    Held,
    /// The end of the stream.
    End,
}

/// One output stream on its way into a [`Store`].
#[derive(Debug)]
pub(crate) struct Drain<M> {
    /// None once the pipe has been closed in the program's face.
    fd: Option<Arc<Kept>>,
    store: Store<M>,
    copies: Copies,
    blocked: Meter,
    /// The pipe's size, asked for when it first matters: a user's pipes have
    /// 8 KiB instead of 64 once the system's budget for him is used up.
    capacity: Option<usize>,
    /// It is the end of a terminal where that is shown, and not of a pipe.
    is_terminal: bool,
    /// The end of that terminal that programs have, open here as well so that
    /// there is no end before the program has exited: whoever it controls may
    /// close all that it has of it, and open it again.
    slave: Option<Kept>,
    /// Readable once the program has exited, for a driver that is not told.
    exit: Option<OwnedFd>,
    grant: Option<Grant>,
    /// Reads that found the pipe at least half full, until it has been grown.
    voluminous: u8,
    bytes: u64,
    last_read: Option<Instant>,
    ended: bool,
    /// It was left before the end of the stream was seen.
    before_end: bool,
    failed: bool,
}

impl<M: Memory> Drain<M> {
    /// A drain of `fd`, which must be non-blocking.
    pub(crate) fn new(
        fd: OwnedFd,
        probe: Option<Arc<FullProbe>>,
        store: Store<M>,
        now: Instant,
    ) -> Drain<M> {
        Drain {
            fd: Some(Arc::new(Kept::new(fd))),
            store,
            copies: Copies::default(),
            blocked: Meter::new(probe, now),
            capacity: None,
            is_terminal: false,
            slave: None,
            exit: None,
            grant: None,
            voluminous: 0,
            bytes: 0,
            last_read: None,
            ended: false,
            before_end: false,
            failed: false,
        }
    }

    /// The same, and what it reads is handed on.
    pub(crate) fn with_copies(self, copies: Copies) -> Drain<M> {
        Drain { copies, ..self }
    }

    /// A drain of a terminal, whose other end is `slave`.
    pub(crate) fn of_terminal(
        master: OwnedFd,
        slave: Option<OwnedFd>,
        store: Store<M>,
        now: Instant,
    ) -> Drain<M> {
        Drain {
            blocked: Meter::unknown(),
            is_terminal: true,
            slave: slave.map(Kept::new),
            ..Drain::new(master, None, store, now)
        }
    }

    /// A driver that is not told of the program's exit waits for this.
    pub(crate) fn with_exit(mut self, pidfd: Option<OwnedFd>) -> Drain<M> {
        if pidfd.is_none() {
            self.exited();
        }
        self.exit = pidfd;
        self
    }

    /// Readable once [`exited`](Drain::exited) is to be called; none if it was.
    fn exit(&self) -> Option<BorrowedFd<'_>> {
        self.exit.as_ref().map(AsFd::as_fd)
    }

    /// The program has exited: from now on a terminal ends when nobody else has
    /// it any more.
    pub(crate) fn exited(&mut self) {
        self.slave = None;
        self.exit = None;
    }

    /// Reads once.
    ///
    /// # Errors
    /// `OutOfMemory` when the store cannot grow, and whatever else `read(2)`
    /// says of a broken descriptor.
    pub(crate) fn step(&mut self) -> io::Result<Step> {
        if self.ended {
            return Ok(Step::End);
        }
        if !self.copies.have_room() {
            self.blocked.hold(Instant::now());
            return Ok(Step::Held);
        }
        match self.store.room()? {
            Room::Some => {}
            Room::None => {
                self.blocked.hold(Instant::now());
                return Ok(Step::Held);
            }
            Room::Unwanted => {
                // The driver closes the pipe, once it has stopped to watch it.
                self.cut();
                return Ok(Step::End);
            }
        }
        // A pipe never holds more than its size, so asking for more only makes
        // the store reserve more.
        self.read(match self.grant {
            Some(_) => READ,
            None => pipe::DEFAULT_CAPACITY,
        })
    }

    /// Whether a step would find no room.
    pub(crate) fn is_held(&mut self) -> bool {
        !self.ended && matches!(self.store.room(), Ok(Room::None))
    }

    fn read(&mut self, max: usize) -> io::Result<Step> {
        let Some(fd) = self.fd.as_deref().map(Kept::get).transpose()? else {
            return Ok(Step::End);
        };
        let is_suspected = self.blocked.before_read(Instant::now());
        let n = match self.store.read_from(fd, max) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.blocked.found_empty(Instant::now());
                return Ok(Step::Empty);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(Step::Moved),
            Err(e) if self.is_terminal && pty::is_end(&e) => 0,
            Err(e) => return Err(e),
        };
        if n == 0 {
            self.end();
            return Ok(Step::End);
        }
        let now = Instant::now();
        let capacity = match self.capacity {
            Some(capacity) => capacity,
            None if is_suspected => {
                let asked = pipe::capacity(fd).unwrap_or(pipe::DEFAULT_CAPACITY);
                *self.capacity.insert(asked)
            }
            None => pipe::DEFAULT_CAPACITY,
        };
        self.blocked.after_read(n, fd, capacity, now);
        self.last_read = Some(now);
        self.bytes += n as u64;
        self.store.note(n);
        if !self.copies.queues.is_empty() {
            self.copies.offer(self.store.latest(n));
        }
        if self.grant.is_none() && n >= capacity / 2 {
            self.grow();
        }
        Ok(Step::Moved)
    }

    /// The second read of volume gets the pipe a larger buffer: a program that
    /// says little never costs more than the default.
    fn grow(&mut self) {
        self.voluminous += 1;
        if self.voluminous != 2 {
            // Refused once is refused for good; no call for every read.
            self.voluminous = self.voluminous.min(3);
            return;
        }
        if let Some(grant) = Grant::take(VOLUME_CAPACITY)
            && let Some(fd) = self.fd()
            && let Ok(capacity) = pipe::grow(fd, VOLUME_CAPACITY)
        {
            self.capacity = Some(capacity);
            self.grant = Some(grant);
        }
    }

    /// Reads what is in the pipe now and not a byte more, and ends. Called when
    /// the program has exited: all that it wrote is there already, while a
    /// process that it left behind may write for ever.
    ///
    /// # Errors
    /// As [`Drain::step`].
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        self.exited();
        self.blocked.slept(Instant::now());
        // Of a terminal nobody can say how much: a look at it does not see what
        // is still on its way. A read does, and gives all of that before it says
        // that there is nothing; so that is waited for, within what can be there.
        let mut left = match self.is_terminal {
            true => pty::MOST,
            false => self.fd().map_or(Ok(0), pipe::unread)?,
        };
        while left > 0 && !self.ended {
            let max = usize::try_from(left).unwrap_or(READ).min(READ);
            let before = self.bytes;
            match self.read(max)? {
                Step::Moved => left = left.saturating_sub(self.bytes - before),
                _ => break,
            }
        }
        if !self.ended {
            self.before_end = true;
            self.end();
        }
        Ok(())
    }

    /// Leaves the stream where it is.
    pub(crate) fn cut(&mut self) {
        if let Some(fd) = self.fd() {
            self.blocked.settle(fd, Instant::now());
        }
        if !self.ended {
            self.before_end = true;
            self.failed = true;
            self.end();
        }
    }

    /// Closes the pipe while the program may still write: its next write fails.
    pub(crate) fn close(&mut self) {
        self.cut();
        self.slave = None;
        self.fd = None;
    }

    /// Gives up a stream that cannot be read.
    pub(crate) fn break_off(&mut self, error: io::Error) {
        self.store.fail(error);
        self.cut();
    }

    fn end(&mut self) {
        self.ended = true;
        self.blocked.over();
        self.store.end();
        self.copies.end();
    }

    /// Whether everything has been read that will be.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// After a wait that may have been for this pipe.
    pub(crate) fn slept(&mut self, now: Instant) {
        self.blocked.slept(now);
    }

    /// It was looked at after `then`, and held nothing.
    pub(crate) fn was_empty(&mut self, then: Instant) {
        self.blocked.found_empty(then);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// None where it cannot be known.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        self.blocked.total()
    }

    /// For those who say how large a terminal is, for as long as this has it.
    pub(crate) fn weak_fd(&self) -> Weak<Kept> {
        self.fd.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// What tells that to others, at any time.
    pub(crate) fn gauge(&self) -> Gauge {
        self.blocked.gauge(self.weak_fd())
    }

    pub(crate) fn last_read(&self) -> Option<Instant> {
        self.last_read
    }

    pub(crate) fn over_limit(&self) -> bool {
        self.store.over_limit()
    }

    /// The pipe, none once it is closed, and in a fork.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref()?.get().ok()
    }

    /// The same, if it is of a terminal.
    pub(crate) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        self.fd().filter(|_| self.is_terminal)
    }

    /// Whether it keeps what it reads.
    pub(crate) fn keeps(&self) -> bool {
        self.store.keeps()
    }

    /// Whether the stream was left before its end was seen: somebody may still
    /// hold it.
    pub(crate) fn was_left(&self) -> bool {
        self.before_end
    }

    /// Whether reading failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// The kept bytes in one piece, and the place in them where others were
    /// dropped.
    pub(crate) fn into_kept(self) -> (io::Result<M>, Option<u64>) {
        self.store.into_kept()
    }
}
