//! The side that takes bytes out, as slowly as it likes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use super::broken::Broken;
use super::entry::BlockSlice;
use super::shared::ElasticShared;
use super::sides::Finish;
use super::spill_files::{FileRange, SpillFile};
use super::spill_thread;
use super::state::QueueState;
use super::storage::NextEntry;
use procwright_os::memory::Filler;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::sync::MutexGuard;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// The consumer's side. Dropped, it is closed.
#[derive(Debug)]
pub(crate) struct ElasticConsumer {
    shared: Arc<ElasticShared>,
    /// Bytes in hand from memory.
    slice: Option<BlockSlice>,
    /// Bytes in hand from disk.
    read_back: Option<Filler>,
    /// The bytes of that block that are done with.
    done: usize,
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// The number of bytes that were read.
    Bytes(usize),
    /// The number of bytes that are missing here.
    Gap(u64),
    /// Nothing yet.
    Empty,
    End,
}

/// The next bytes, where they lie.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Peek<'a> {
    /// The next bytes, until they are consumed.
    Bytes(&'a [u8]),
    /// The number of bytes that are missing here. Told once.
    Gap(u64),
    /// Nothing yet.
    Empty,
    End,
}

impl ElasticConsumer {
    pub(super) fn new(shared: Arc<ElasticShared>) -> ElasticConsumer {
        ElasticConsumer {
            shared,
            slice: None,
            read_back: None,
            done: 0,
        }
    }

    /// Copies what comes next into `buffer`, straight from the file if it is on
    /// disk.
    ///
    /// # Errors
    /// What will never come.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<ReadOutcome, Broken> {
        if self.in_hand().is_none() {
            match self.next()? {
                NextEntry::Disk(range) => {
                    let most = usize::try_from(range.length).unwrap_or(usize::MAX);
                    let most = most.min(buffer.len());
                    let n = self.read_disk(&range, &mut buffer[..most], false)?;
                    return Ok(ReadOutcome::Bytes(n));
                }
                NextEntry::Gap(n) => return Ok(ReadOutcome::Gap(n)),
                NextEntry::Empty => return Ok(ReadOutcome::Empty),
                NextEntry::End => return Ok(ReadOutcome::End),
                NextEntry::Slice(slice) => self.slice = Some(slice),
            }
        }
        let bytes = self.in_hand().unwrap_or_default();
        let n = bytes.len().min(buffer.len());
        buffer[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(ReadOutcome::Bytes(n))
    }

    /// Shows what comes next where it lies. It stays the next until it is
    /// consumed.
    ///
    /// # Errors
    /// What will never come.
    pub(crate) fn peek(&mut self) -> Result<Peek<'_>, Broken> {
        if self.in_hand().is_none() {
            match self.next()? {
                NextEntry::Disk(range) => self.fetch(&range)?,
                NextEntry::Gap(n) => return Ok(Peek::Gap(n)),
                NextEntry::Empty => return Ok(Peek::Empty),
                NextEntry::End => return Ok(Peek::End),
                NextEntry::Slice(slice) => self.slice = Some(slice),
            }
        }
        Ok(match self.in_hand() {
            Some(bytes) => Peek::Bytes(bytes),
            None => Peek::Empty,
        })
    }

    fn in_hand(&self) -> Option<&[u8]> {
        match (&self.slice, &self.read_back) {
            (Some(slice), _) => Some(slice.bytes()),
            (None, Some(filler)) if self.done < filler.filled() => {
                Some(&filler.block().bytes()[self.done..])
            }
            _ => None,
        }
    }

    fn next(&mut self) -> Result<NextEntry, Broken> {
        let mut state = self.shared.lock();
        state.consumer.last_taken = Some(Instant::now());
        let next = state.next();
        if matches!(next, NextEntry::Disk(_)) {
            return Ok(next);
        }
        // Nothing comes from disk for now: that memory is not needed.
        if let Some(filler) = self.read_back.take() {
            state.storage.pool.give(filler.into_block());
        }
        state.update_readable();
        if matches!(next, NextEntry::End) {
            let unused = state.release_memory();
            let finish = state.producer.finish.replace(Finish::Whole);
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
    fn fetch(&mut self, range: &FileRange) -> Result<(), Broken> {
        let mut filler = match self.read_back.take() {
            Some(filler) => filler,
            None => {
                let mut state = self.shared.lock();
                let size = state.storage.next_block_size();
                let taken = state.storage.pool.take(size);
                drop(state);
                taken.map_err(|error| self.lose(range, 0, error))?
            }
        };
        // No other thread ever had this block.
        filler.rewind();
        let area = filler.spare();
        let most = usize::try_from(range.length).unwrap_or(usize::MAX);
        let most = most.min(area.len());
        let n = self.read_disk(range, &mut area[..most], true)?;
        filler.publish(n);
        self.done = 0;
        self.read_back = Some(filler);
        Ok(())
    }

    fn read_disk(
        &self,
        range: &FileRange,
        buffer: &mut [u8],
        in_hand: bool,
    ) -> Result<usize, Broken> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let n = loop {
            match rustix::io::pread(&range.file, &mut *buffer, range.at) {
                // A file without a name was cut, by way of a descriptor in /proc.
                Ok(0) => {
                    let error = io::ErrorKind::UnexpectedEof.into();
                    return Err(self.lose(range, buffer.len(), error));
                }
                Ok(n) => break n,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(self.lose(range, buffer.len(), e.into())),
            }
        };
        let mut state = self.shared.lock();
        state.consumer.read_back += n as u64;
        let freed = self.leave_disk(&mut state, n);
        if !in_hand {
            state.consume_read_back(n as u64);
            self.shared.notify_monitors(&state);
        }
        state.update_readable();
        drop(state);
        // Closing a file frees its blocks, which takes a while.
        drop(freed);
        Ok(n)
    }

    /// Goes on behind bytes that cannot be read. None are lost if none were
    /// tried.
    fn lose(&self, range: &FileRange, n: usize, source: io::Error) -> Broken {
        let mut state = self.shared.lock();
        let n = n.min(usize::try_from(range.length).unwrap_or(usize::MAX));
        let broken = Broken::Lost {
            offset: state.accounts.position(),
            length: n as u64,
            source,
        };
        state.accounts.lost += n as u64;
        let freed = self.leave_disk(&mut state, n);
        state.update_readable();
        drop(state);
        drop(freed);
        broken
    }

    fn leave_disk(&self, state: &mut QueueState, n: usize) -> Vec<SpillFile> {
        let busy = state.spill.is_writing;
        let Some(disk) = &mut state.storage.disk else {
            return Vec::new();
        };
        let (freed, segments) = disk.read(n as u64, busy);
        state.storage.count_files();
        if freed {
            spill_thread::disk_room_was_made(&self.shared, state);
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
        if let Some(slice) = &mut self.slice {
            slice.start += n;
            state.consume(n as u64);
            if n == here
                && let Some(slice) = self.slice.take()
            {
                state.storage.pool.give(slice.block);
            }
        } else {
            self.done += n;
            state.consume_read_back(n as u64);
        }
        state.update_readable();
        let now = Instant::now();
        state.consumer.last_taken = Some(now);
        self.shared.resume_producer(&mut state, now);
        self.shared.notify_monitors(&state);
        spill_thread::memory_was_relieved(&self.shared, &mut state);
        let start_thread = spill_thread::wake_if_needed(&self.shared, &mut state);
        drop(state);
        if start_thread {
            spill_thread::start(&self.shared);
        }
    }

    /// A handle that closes this side from any thread.
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
            if state.has_next() || state.consumer.is_closed {
                return true;
            }
            let now = Instant::now();
            if deadline.reached(now) {
                return false;
            }
            state.consumer.is_waiting = true;
            let Some(wake) = state.consumer.wake_to_sleep_on() else {
                state = self
                    .shared
                    .wait_for_producer(state, deadline.remaining(now));
                continue;
            };
            drop(state);
            let polled = poll::poll(&mut [Fd::new(&*wake, Flags::IN)], deadline);
            state = self.woken(&wake);
            if polled.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
                // An error that is not expected; the condition variable does as well.
                state.consumer.sleeps_on = None;
            }
        }
    }

    /// Waits as [`wait`](ElasticConsumer::wait) does, but for no longer than until
    /// `interrupt` is readable. The call may return sooner.
    ///
    /// The thread does not sleep on the [`readiness`](Closer::readiness), which has to be
    /// set and cleared with every piece, whether a thread waits or not.
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
        if state.has_next() || state.consumer.is_closed {
            return Ok(Woken::Maybe);
        }
        if deadline.reached(Instant::now()) {
            return Ok(Woken::TimedOut);
        }
        let wake = match state.consumer.wake_to_sleep_on() {
            Some(wake) => wake,
            None => Arc::new(Wake::new()?),
        };
        state.consumer.sleeps_on = Some(Arc::clone(&wake));
        state.consumer.is_waiting = true;
        drop(state);
        let mut fds = [
            Fd::new(&*wake, Flags::IN),
            Fd::from_borrowed_fd(interrupt, Flags::IN),
        ];
        let polled = poll::poll(&mut fds, deadline);
        let is_rung = !fds[0].revents().is_empty();
        drop(self.woken(&wake));
        match polled {
            Ok(0) => Ok(Woken::TimedOut),
            Ok(_) if !is_rung => Ok(Woken::Interrupted),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Ok(_) | Err(_) => Ok(Woken::Maybe),
        }
    }

    /// Ends a sleep on `wake`, and takes the lock. `wake` is silenced under the lock:
    ///
    /// 1. the producer adds bytes under the lock, takes back `is_waiting` and rings;
    /// 2. the consumer takes the lock, sees that `is_waiting` was taken back, and
    ///    silences: the ring came before, so none stays for the next sleep;
    /// 3. a ring that comes later follows a new `is_waiting`, and is for that sleep.
    fn woken(&self, wake: &Wake) -> MutexGuard<'_, QueueState> {
        let mut state = self.shared.lock();
        if !std::mem::take(&mut state.consumer.is_waiting) {
            wake.silence();
        }
        state
    }
}

/// How a wait with an interrupt came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Something may be there.
    Maybe,
    Interrupted,
    TimedOut,
}

/// Tells by a descriptor that there is something to read.
#[derive(Clone, Debug)]
pub(crate) struct ReadinessFd(Arc<Wake>);

impl AsFd for ReadinessFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Closes the consumer's side from any thread.
#[derive(Clone, Debug)]
pub(crate) struct Closer(Arc<ElasticShared>);

impl Closer {
    /// Closes the consumer's side; false if it was closed before. A consumer that waits
    /// is woken. What is there is given back, but for what the consumer has in hand.
    pub(crate) fn close(&self) -> bool {
        let mut state = self.0.lock();
        if std::mem::replace(&mut state.consumer.is_closed, true) {
            return false;
        }
        let entries = (
            std::mem::take(&mut state.storage.head),
            std::mem::take(&mut state.storage.tail),
        );
        let bytes = state.storage.in_memory();
        let start_thread = spill_thread::claim_release(&mut state);
        self.0.notify_consumer(&mut state);
        let unused = state.release_memory();
        drop(state);
        self.0.ring_for_room();
        self.0.spill_wakeup.notify_all();
        self.0.moved.notify_all();
        if start_thread {
            spill_thread::start_release(&self.0);
        }
        spill_thread::drop_elsewhere((entries, unused), bytes);
        true
    }

    /// A descriptor that is readable while there is something for the consumer,
    /// the end included, and from the close on. Made when it is asked for, and nobody else has
    /// it.
    ///
    /// The closer has this, and not the consumer, which a thread that waits has to
    /// itself.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn readiness(&self) -> io::Result<ReadinessFd> {
        let mut state = self.0.lock();
        let wake = match state.consumer.readable() {
            Some(wake) => wake,
            None => {
                let wake = Arc::new(Wake::new()?);
                state.consumer.begin_readable(&wake);
                state.update_readable();
                wake
            }
        };
        Ok(ReadinessFd(wake))
    }
}

impl Drop for ElasticConsumer {
    fn drop(&mut self) {
        self.closer().close();
    }
}
