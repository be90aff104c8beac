//! The side that takes bytes out, as slowly as it likes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::disk::Extent;
use super::monitor::wait;
use super::state::{Finish, Next, Piece, State};
use super::{Broken, Shared, spill};
use crate::sys::memory::Filler;
use crate::sys::poll::{self, Fd, Flags};
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// The consumer's side. Dropped, nobody wants more.
#[derive(Debug)]
pub(crate) struct Consumer {
    shared: Arc<Shared>,
    /// What is in hand, from memory.
    piece: Option<Piece>,
    /// What is in hand, from disk.
    read_back: Option<Filler>,
    /// How much of that is done with.
    done: usize,
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// So many bytes.
    Bytes(usize),
    /// So many bytes are missing here.
    Gap(u64),
    /// Nothing yet.
    Empty,
    End,
}

/// What lies before the consumer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Peek<'a> {
    /// These bytes, until they are consumed.
    Bytes(&'a [u8]),
    /// So many bytes are missing here. Told once.
    Gap(u64),
    /// Nothing yet.
    Empty,
    End,
}

impl Consumer {
    pub(super) fn new(shared: Arc<Shared>) -> Consumer {
        Consumer {
            shared,
            piece: None,
            read_back: None,
            done: 0,
        }
    }

    /// Copies what comes next into `buffer`, straight from the file if it is on
    /// disk.
    ///
    /// # Errors
    /// What will never come.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Item, Broken> {
        if self.in_hand().is_none() {
            match self.next()? {
                Next::Disk(extent) => {
                    let most = usize::try_from(extent.length).unwrap_or(usize::MAX);
                    let most = most.min(buffer.len());
                    let n = self.read_disk(&extent, &mut buffer[..most], false)?;
                    return Ok(Item::Bytes(n));
                }
                Next::Gap(n) => return Ok(Item::Gap(n)),
                Next::Empty => return Ok(Item::Empty),
                Next::End => return Ok(Item::End),
                Next::Piece(piece) => self.piece = Some(piece),
            }
        }
        let bytes = self.in_hand().unwrap_or_default();
        let n = bytes.len().min(buffer.len());
        buffer[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(Item::Bytes(n))
    }

    /// Shows what comes next where it lies. It stays the next until it is
    /// consumed.
    ///
    /// # Errors
    /// What will never come.
    pub(crate) fn peek(&mut self) -> Result<Peek<'_>, Broken> {
        if self.in_hand().is_none() {
            match self.next()? {
                Next::Disk(extent) => self.fetch(&extent)?,
                Next::Gap(n) => return Ok(Peek::Gap(n)),
                Next::Empty => return Ok(Peek::Empty),
                Next::End => return Ok(Peek::End),
                Next::Piece(piece) => self.piece = Some(piece),
            }
        }
        Ok(match self.in_hand() {
            Some(bytes) => Peek::Bytes(bytes),
            None => Peek::Empty,
        })
    }

    fn in_hand(&self) -> Option<&[u8]> {
        match (&self.piece, &self.read_back) {
            (Some(piece), _) => Some(piece.bytes()),
            (None, Some(filler)) if self.done < filler.filled() => {
                Some(&filler.block().bytes()[self.done..])
            }
            _ => None,
        }
    }

    fn next(&mut self) -> Result<Next, Broken> {
        let mut state = self.shared.lock();
        state.taken = Some(Instant::now());
        let next = state.next();
        if matches!(next, Next::Disk(_)) {
            return Ok(next);
        }
        // Nothing comes from disk for now: that memory is not needed.
        if let Some(filler) = self.read_back.take() {
            state.pool.give(filler.into_block());
        }
        state.settle();
        if matches!(next, Next::End) {
            let unused = state.wind_up();
            let finish = state.finish.replace(Finish::Whole);
            drop(state);
            drop(unused);
            match finish {
                Some(Finish::Overflowed(offset)) => return Err(Broken::Overflowed { offset }),
                Some(Finish::Failed(error)) => return Err(Broken::Producer(error)),
                Some(Finish::Whole) | None => {}
            }
        }
        Ok(next)
    }

    /// Reads from disk into memory of our own.
    fn fetch(&mut self, extent: &Extent) -> Result<(), Broken> {
        let mut filler = match self.read_back.take() {
            Some(filler) => filler,
            None => {
                let mut state = self.shared.lock();
                let size = state.block();
                let taken = state.pool.take(size);
                drop(state);
                taken.map_err(|error| self.lose(extent, 0, error))?
            }
        };
        // Nobody else ever had it.
        filler.rewind();
        let area = filler.spare();
        let most = usize::try_from(extent.length).unwrap_or(usize::MAX);
        let most = most.min(area.len());
        let n = self.read_disk(extent, &mut area[..most], true)?;
        filler.publish(n);
        self.done = 0;
        self.read_back = Some(filler);
        Ok(())
    }

    fn read_disk(
        &self,
        extent: &Extent,
        buffer: &mut [u8],
        in_hand: bool,
    ) -> Result<usize, Broken> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let n = loop {
            match rustix::io::pread(&extent.file, &mut *buffer, extent.at) {
                // Somebody has cut a file that nobody can open.
                Ok(0) => {
                    let error = io::ErrorKind::UnexpectedEof.into();
                    return Err(self.lose(extent, buffer.len(), error));
                }
                Ok(n) => break n,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(self.lose(extent, buffer.len(), e.into())),
            }
        };
        let mut state = self.shared.lock();
        state.read_back += n as u64;
        let freed = self.leave_disk(&mut state, n);
        if !in_hand {
            state.took_back(n as u64);
            self.shared.tell_watchers(&state);
        }
        state.settle();
        drop(state);
        // Closing a file frees its blocks, which takes a while.
        drop(freed);
        Ok(n)
    }

    /// Goes on behind bytes that cannot be read. None are lost if none were
    /// tried.
    fn lose(&self, extent: &Extent, n: usize, source: io::Error) -> Broken {
        let mut state = self.shared.lock();
        let n = n.min(usize::try_from(extent.length).unwrap_or(usize::MAX));
        let broken = Broken::Lost {
            offset: state.position(),
            length: n as u64,
            source,
        };
        state.lost += n as u64;
        let freed = self.leave_disk(&mut state, n);
        state.settle();
        drop(state);
        drop(freed);
        broken
    }

    fn leave_disk(&self, state: &mut State, n: usize) -> Vec<super::disk::Segment> {
        let busy = state.spill.is_busy();
        let Some(disk) = &mut state.disk else {
            return Vec::new();
        };
        let (freed, segments) = disk.read(n as u64, busy);
        state.count_files();
        if freed {
            spill::room_was_made(&self.shared, state);
        }
        segments
    }

    /// Done with the first `n` of the bytes that were peeked at.
    ///
    /// # Panics
    /// If there were not so many.
    pub(crate) fn consume(&mut self, n: usize) {
        let here = self.in_hand().map_or(0, <[u8]>::len);
        assert!(n <= here, "{n} bytes consumed of {here}");
        if n == 0 {
            return;
        }
        let mut state = self.shared.lock();
        if let Some(piece) = &mut self.piece {
            piece.start += n;
            state.took(n as u64);
            if n == here
                && let Some(piece) = self.piece.take()
            {
                state.pool.give(piece.block);
            }
        } else {
            self.done += n;
            state.took_back(n as u64);
        }
        state.settle();
        let now = Instant::now();
        state.taken = Some(now);
        self.shared.let_on(&mut state, now);
        self.shared.tell_watchers(&state);
        spill::relieved(&self.shared, &mut state);
        let start_thread = spill::wanted(&self.shared, &mut state);
        drop(state);
        if start_thread {
            spill::start(&self.shared);
        }
    }

    /// What closes this side from elsewhere.
    pub(crate) fn closer(&self) -> Closer {
        Closer(Arc::clone(&self.shared))
    }

    /// Waits until there is something but "nothing yet", or this side is closed;
    /// false at the deadline.
    ///
    /// # Blocking
    /// Until then.
    pub(crate) fn wait(&mut self, deadline: Deadline) -> bool {
        if self.in_hand().is_some() {
            return true;
        }
        let mut state = self.shared.lock();
        loop {
            if state.has_next() || state.closed {
                return true;
            }
            let now = Instant::now();
            if deadline.reached(now) {
                return false;
            }
            state.consumer_waits = true;
            let Some(bell) = state.bell() else {
                state = wait(&self.shared.came, state, deadline.remaining(now));
                continue;
            };
            drop(state);
            let polled = poll::poll(&mut [Fd::new(&*bell, Flags::IN)], deadline);
            state = self.woken(&bell);
            if polled.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
                // Not to be expected; the condition variable does as well.
                state.bell = None;
            }
        }
    }

    /// As [`wait`](Consumer::wait), but for no longer than until `interrupt` is
    /// readable. It may return sooner.
    ///
    /// Not on the [`readiness`](Closer::readiness), which has to be set and cleared
    /// with every piece, whether anybody waits or not.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn wait_or(
        &mut self,
        interrupt: BorrowedFd<'_>,
        deadline: Deadline,
    ) -> io::Result<Woken> {
        if self.in_hand().is_some() {
            return Ok(Woken::Maybe);
        }
        let mut state = self.shared.lock();
        if state.has_next() || state.closed {
            return Ok(Woken::Maybe);
        }
        if deadline.reached(Instant::now()) {
            return Ok(Woken::TimedOut);
        }
        let bell = match state.bell() {
            Some(bell) => bell,
            None => Arc::new(Wake::new()?),
        };
        state.bell = Some(Arc::clone(&bell));
        state.consumer_waits = true;
        drop(state);
        let mut fds = [
            Fd::new(&*bell, Flags::IN),
            Fd::from_borrowed_fd(interrupt, Flags::IN),
        ];
        let polled = poll::poll(&mut fds, deadline);
        let is_rung = !fds[0].revents().is_empty();
        drop(self.woken(&bell));
        match polled {
            Ok(0) => Ok(Woken::TimedOut),
            Ok(_) if !is_rung => Ok(Woken::Interrupted),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Ok(_) | Err(_) => Ok(Woken::Maybe),
        }
    }

    /// The consumer sleeps no more. Under the lock, the bell is silenced: what rings
    /// it comes after what it rings for.
    fn woken(&self, bell: &Wake) -> MutexGuard<'_, State> {
        let mut state = self.shared.lock();
        // Who rings it takes that back.
        if !std::mem::take(&mut state.consumer_waits) {
            bell.silence();
        }
        state
    }
}

/// How a wait with an interrupt came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// There may be something.
    Maybe,
    Interrupted,
    TimedOut,
}

/// Tells by a descriptor that there is something to read.
#[derive(Clone, Debug)]
pub(crate) struct Readiness(Arc<Wake>);

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Closes the consumer's side from any thread.
#[derive(Clone, Debug)]
pub(crate) struct Closer(Arc<Shared>);

impl Closer {
    /// Nobody wants more; false if it was so before. Whoever waits for more is
    /// woken. What is there is given back, but for what the consumer has in hand.
    pub(crate) fn close(&self) -> bool {
        let mut state = self.0.lock();
        if std::mem::replace(&mut state.closed, true) {
            return false;
        }
        let entries = (
            std::mem::take(&mut state.head),
            std::mem::take(&mut state.tail),
        );
        let bytes = state.in_memory;
        let start_thread = spill::left_files(&mut state);
        self.0.tell_consumer(&mut state);
        let unused = state.wind_up();
        drop(state);
        self.0.ring_for_room();
        self.0.work.notify_all();
        self.0.moved.notify_all();
        if start_thread {
            spill::give_back(&self.0);
        }
        spill::forget((entries, unused), bytes);
        true
    }

    /// A descriptor that is readable while there is something for the consumer,
    /// the end included, and from the close on. Made when it is first asked for.
    ///
    /// Not a method of the consumer, which a thread that waits has to itself.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn readiness(&self) -> io::Result<Readiness> {
        let mut state = self.0.lock();
        let wake = match &state.readable {
            Some(wake) => Arc::clone(wake),
            None => {
                let wake = Arc::new(Wake::new()?);
                state.readable = Some(Arc::clone(&wake));
                state.settle();
                wake
            }
        };
        Ok(Readiness(wake))
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.closer().close();
    }
}
