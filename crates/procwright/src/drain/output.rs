//! The drain: from an output pipe into a store.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::ceiling::Ceiling;
use super::copies::Copies;
use super::flow_watch::FlowTeller;
use super::last_words::LastWords;
use super::meter::{Gauge, Meter};
use super::pipe_budget::{PipeMemoryGrant, VOLUME_CAPACITY};
use super::room::StoreRoom;
use super::store::Store;
use crate::spool::Memory;
use procwright_os::fork::CloseOnFork;
use procwright_os::pipe::{self, FullProbe};
use procwright_os::pty;

/// The largest single read. Between 64 and 256 KiB nothing changes in speed;
/// the size of the largest pipe that we ask for saves calls.
const READ: usize = 256 * 1024;

/// The outcome of a step.
#[derive(Debug)]
pub(crate) enum DrainStep {
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
    /// The pipe. None once it has been closed while the program could still write.
    fd: Option<Arc<CloseOnFork>>,
    store: Store<M>,
    /// The most that goes into the store and to others.
    ceiling: Option<Ceiling>,
    copies: Option<Copies>,
    last_words: Option<Arc<LastWords>>,
    /// Tells those who do not read of each read, and of the end.
    teller: Option<FlowTeller>,
    blocked: Meter,
    /// The pipe's size, asked for when it first matters: a user's pipes have
    /// 8 KiB instead of 64 once the system's budget for that user is used up.
    capacity: Option<usize>,
    /// `fd` is the master of a terminal, and no pipe.
    is_terminal: bool,
    /// The slave of that terminal, open here as well so that there is no end of the
    /// stream before the program has exited: the program may close all that it has of
    /// its terminal, and open it again.
    slave: Option<CloseOnFork>,
    /// A pidfd, readable once the program has exited, for a driver that is not told.
    exit: Option<OwnedFd>,
    grant: Option<PipeMemoryGrant>,
    /// Reads that found the pipe at least half full, until it has been grown.
    voluminous: u8,
    bytes: u64,
    last_read: Option<Instant>,
    ended: bool,
    /// The stream was left before its end was seen.
    before_end: bool,
    /// The most that is still read, once the stream is to be finished.
    rest: Option<u64>,
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
            fd: Some(Arc::new(CloseOnFork::new(fd))),
            store,
            ceiling: None,
            copies: None,
            last_words: None,
            teller: None,
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
            rest: None,
            failed: false,
        }
    }

    /// Lets no more than this go into the store, and to those who get copies.
    pub(crate) fn below(self, ceiling: Option<Ceiling>) -> Drain<M> {
        Drain { ceiling, ..self }
    }

    /// Hands on copies of what is read.
    pub(crate) fn with_copies(self, copies: Copies) -> Drain<M> {
        Drain {
            copies: Some(copies),
            ..self
        }
    }

    /// Has the end of what comes kept there.
    pub(crate) fn with_last_words(self, words: Arc<LastWords>) -> Drain<M> {
        Drain {
            last_words: Some(words),
            ..self
        }
    }

    /// Has `teller` told of what is read.
    pub(crate) fn told_by(mut self, teller: Option<FlowTeller>) -> Drain<M> {
        self.teller = teller;
        self
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
            slave: slave.map(CloseOnFork::new),
            ..Drain::new(master, None, store, now)
        }
    }

    /// Adds what a driver waits for that is not told of the program's exit.
    pub(crate) fn with_exit(mut self, pidfd: Option<OwnedFd>) -> Drain<M> {
        if pidfd.is_none() {
            self.exited();
        }
        self.exit = pidfd;
        self
    }

    /// Readable once [`exited`](Drain::exited) is to be called; none if it was.
    pub(super) fn exit(&self) -> Option<BorrowedFd<'_>> {
        self.exit.as_ref().map(AsFd::as_fd)
    }

    /// Notes that the program has exited: from now on a terminal ends when no other
    /// process has it any more.
    pub(crate) fn exited(&mut self) {
        self.slave = None;
        self.exit = None;
    }

    /// Reads once.
    ///
    /// # Errors
    /// `OutOfMemory` when the store cannot grow, and those of `read(2)` for a broken
    /// descriptor.
    pub(crate) fn step(&mut self) -> io::Result<DrainStep> {
        if self.ended {
            return Ok(DrainStep::End);
        }
        if !self.goes_nowhere() {
            if self.copies_are_full() {
                self.blocked.hold(Instant::now());
                return Ok(DrainStep::Held);
            }
            match self.store.room()? {
                StoreRoom::Some => {}
                StoreRoom::None => {
                    self.blocked.hold(Instant::now());
                    return Ok(DrainStep::Held);
                }
                StoreRoom::Unwanted => {
                    // The driver closes the pipe, once it has stopped to watch it.
                    self.cut();
                    return Ok(DrainStep::End);
                }
            }
        }
        // A pipe never holds more than its size, so asking for more only makes
        // the store reserve more.
        self.read(match self.grant {
            Some(_) => READ,
            None => pipe::DEFAULT_CAPACITY,
        })
    }

    /// True if a step would find no room.
    pub(crate) fn is_held(&mut self) -> bool {
        !self.ended
            && !self.goes_nowhere()
            && (self.copies_are_full() || matches!(self.store.room(), Ok(StoreRoom::None)))
    }

    /// True if what comes next is too much: it needs no room.
    fn goes_nowhere(&self) -> bool {
        let ceiling = self.ceiling.as_ref();
        ceiling.is_some_and(|ceiling| ceiling.room(self.bytes) == 0)
    }

    /// True if a consumer of copies takes no other piece yet. A wake-up rings when it does.
    fn copies_are_full(&self) -> bool {
        let copies = self.copies.as_ref();
        copies.is_some_and(|copies| !copies.have_room())
    }

    fn read(&mut self, max: usize) -> io::Result<DrainStep> {
        let Some(fd) = self.fd.as_deref().map(CloseOnFork::get).transpose()? else {
            return Ok(DrainStep::End);
        };
        let max = match self.rest {
            Some(rest) => max.min(usize::try_from(rest).unwrap_or(max)),
            None => max,
        };
        let before = Instant::now();
        let is_suspected = self.blocked.before_read(before);
        let (copies, words) = (self.copies.as_ref(), self.last_words.as_ref());
        let copy = |bytes: &[u8]| {
            copies.iter().for_each(|copies| copies.offer(bytes));
            words.iter().for_each(|words| words.note(bytes));
        };
        if let Some(teller) = &self.teller {
            teller.begins();
        }
        let read = match self.ceiling.as_mut().map(|one| (one.room(self.bytes), one)) {
            Some((0, ceiling)) => ceiling.read_from(fd, max),
            Some((room, _)) => {
                let max = max.min(usize::try_from(room).unwrap_or(max));
                self.store.read_from(fd, max, copy)
            }
            None => self.store.read_from(fd, max, copy),
        };
        if let (Some(teller), Ok(0) | Err(_)) = (&self.teller, &read) {
            teller.found_nothing();
        }
        let n = match read {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.blocked.found_empty(before);
                if self.rest.is_some() {
                    self.end_before_end();
                    return Ok(DrainStep::End);
                }
                return Ok(DrainStep::Empty);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(DrainStep::Moved),
            Err(e) if self.is_terminal && pty::is_end(&e) => 0,
            Err(e) => return Err(e),
        };
        if n == 0 {
            self.end();
            return Ok(DrainStep::End);
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
        if let Some(teller) = &self.teller {
            teller.read(self.bytes, now);
        }
        if let Some(rest) = &mut self.rest {
            *rest = rest.saturating_sub(n as u64);
            if *rest == 0 {
                self.end_before_end();
                return Ok(DrainStep::End);
            }
        }
        if self.grant.is_none() && n >= capacity / 2 {
            self.grow();
        }
        Ok(DrainStep::Moved)
    }

    /// The second read of volume gets the pipe a larger buffer: a program that
    /// says little never costs more than the default.
    fn grow(&mut self) {
        self.voluminous += 1;
        if self.voluminous != 2 {
            // A refusal is for good: no call for every read.
            self.voluminous = self.voluminous.min(3);
            return;
        }
        if let Some(grant) = PipeMemoryGrant::take(VOLUME_CAPACITY)
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
        // A terminal does not tell how much: FIONREAD does not see what is still on its
        // way. A read does, and gives all of that before it says that there is nothing.
        // So reads go on until then, within what can be there.
        let mut left = match self.is_terminal {
            true => pty::MAX_IN_FLIGHT,
            false => self.fd().map_or(Ok(0), pipe::unread)?,
        };
        while left > 0 && !self.ended {
            let max = usize::try_from(left).unwrap_or(READ).min(READ);
            let before = self.bytes;
            match self.read(max)? {
                DrainStep::Moved => left = left.saturating_sub(self.bytes - before),
                _ => break,
            }
        }
        if !self.ended {
            self.end_before_end();
        }
        Ok(())
    }

    /// Has the steps from now on read what is in the pipe now and not a byte more, as
    /// [`finish`](Drain::finish) does at once: for a store that may have no room for it yet.
    pub(super) fn finish_in_steps(&mut self) {
        if self.ended || self.rest.is_some() {
            return;
        }
        self.exited();
        let rest = match self.is_terminal {
            true => pty::MAX_IN_FLIGHT,
            false => self.fd().map_or(Ok(0), pipe::unread).unwrap_or(0),
        };
        match rest {
            0 => self.end_before_end(),
            rest => self.rest = Some(rest),
        }
    }

    fn end_before_end(&mut self) {
        self.before_end = true;
        self.end();
    }

    /// Leaves the stream where it is.
    pub(crate) fn cut(&mut self) {
        if let Some(fd) = self.fd() {
            self.blocked.count_rest(fd, Instant::now());
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

    /// Closes the pipe if it leads to a reader who wants no more: the program's next write fails.
    pub(super) fn close_if_unwanted(&mut self) {
        let is_unwanted = match self.ended {
            // A step has found it out.
            true => self.failed,
            false => matches!(self.store.room(), Ok(StoreRoom::Unwanted)),
        };
        if self.has_reader() && is_unwanted {
            self.close();
        }
    }

    /// Gives up a stream that cannot be read.
    pub(crate) fn break_off(&mut self, error: io::Error) {
        self.store.fail(error);
        self.cut();
    }

    fn end(&mut self) {
        self.ended = true;
        // Before a reader can know of the end.
        self.teller = None;
        self.blocked.close_probe();
        self.store.end();
        self.copies.iter().for_each(Copies::end);
    }

    /// True once everything has been read that will be.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Notes the end of a wait that may have been for this pipe.
    pub(crate) fn slept(&mut self, now: Instant) {
        self.blocked.slept(now);
    }

    /// Notes that the pipe was polled after `then`, and held nothing.
    pub(crate) fn was_empty(&mut self, then: Instant) {
        self.blocked.found_empty(then);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The time for which the program could not write; none where it cannot be known.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        self.blocked.total()
    }

    /// The descriptor, while the drain has it: to set the size of a terminal.
    pub(crate) fn weak_fd(&self) -> Weak<CloseOnFork> {
        self.fd.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// A view of [`blocked`](Drain::blocked) for other threads.
    pub(crate) fn gauge(&self) -> Gauge {
        self.blocked.gauge(self.weak_fd())
    }

    pub(crate) fn last_read(&self) -> Option<Instant> {
        self.last_read
    }

    /// How many bytes came that were too many.
    pub(crate) fn excess(&self) -> u64 {
        let ceiling = self.ceiling.as_ref();
        ceiling.map_or(0, Ceiling::excess)
    }

    /// The pipe; none once it is closed, and in a fork.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref()?.get().ok()
    }

    /// The terminal, if this is a drain of one.
    pub(crate) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        self.fd().filter(|_| self.is_terminal)
    }

    /// True if it leads to a reader, who may be slow, or want no more.
    pub(crate) fn has_reader(&self) -> bool {
        self.store.has_reader()
    }

    /// The end of what came, where that is kept.
    pub(crate) fn last_words(&self) -> Option<&Arc<LastWords>> {
        self.last_words.as_ref()
    }

    /// True if what is read is kept.
    pub(crate) fn keeps(&self) -> bool {
        self.store.keeps()
    }

    /// True if the stream was left before its end was seen: a process may still hold it.
    pub(crate) fn was_left(&self) -> bool {
        self.before_end
    }

    /// True if reading failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// The kept bytes in one piece, and the place in them where others were
    /// dropped.
    pub(crate) fn into_kept(self) -> (io::Result<M>, Option<u64>) {
        let cut_at = self.ceiling.as_ref().and_then(Ceiling::cut_at);
        let (kept, ends) = self.store.into_kept();
        (kept, ends.or(cut_at))
    }
}
