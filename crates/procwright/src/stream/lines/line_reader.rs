//! A stream line by line.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::framing::{Frame, Framing};
use super::line_buffer::{AfterBuffer, BUFFER, LineBuffer};
use crate::stream::{Chunk, Patience, Reader};
use procwright_os::Invalid;
use procwright_os::fork;
use procwright_os::handle::{InterruptibleGuard, InterruptibleLock};
use procwright_os::sync::{Mutex, MutexGuard};

/// The next item of a stream of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A line with its separator, or without one: the last of a stream that does
    /// not end with one, the last before a gap, a piece of one that is too long.
    Line(&'a [u8]),
    /// The number of bytes that were dropped here, as [`Overflow`](crate::Overflow) says.
    Gap(u64),
    /// The end.
    End,
}

/// Reads a stream by lines or by bytes: a [`Reader`] with a buffer.
///
/// Any number of threads may use it at once; each line goes to one of them. Each call
/// that blocks has a form that does not, so that a front end can hand out lines without
/// letting go of an interpreter's lock for each: `try_` first, then `await_`.
/// [`lines`](LineReader::lines) is for all other callers.
///
/// A stream that fails (bytes that were on disk and cannot be read any more, an
/// [`Overflow::Fail`](crate::Overflow::Fail)) does so in its place: after what came
/// before. No line is ever made of bytes from both sides of a gap or a failure.
///
/// ```
/// use procwright::Command;
/// use procwright::stream::{Framing, LineItem, LineReader};
///
/// let mut child = Command::new("printf").arg("one\ntwo").spawn()?;
/// let lines = LineReader::new(child.stdout.take().unwrap(), Framing::default())?;
/// let lines: Vec<_> = lines.lines().collect::<Result<_, _>>()?;
/// assert_eq!(lines, [LineItem::from("one"), LineItem::from("two")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LineReader {
    pub(super) reader: Reader,
    pub(super) frame: Frame,
    /// The turn to read more. Readers wait for it here, where a wait can be
    /// interrupted; a wait for the lock below cannot.
    turn: InterruptibleLock,
    /// Bytes not yet given out. The reader that has the turn holds the lock while it
    /// reads more; all others only try.
    pub(super) held: Mutex<LineBuffer>,
    /// Bytes that were put back while another thread had `held`. The next thread that
    /// locks that takes them.
    returned: Mutex<Vec<u8>>,
    /// Whether `returned` has bytes: a load in place of a lock for every line.
    pub(super) has_returned: AtomicBool,
    /// The position of `held`, which can be read without its lock.
    position: Arc<AtomicU64>,
    generation: u32,
}

impl LineReader {
    /// Cuts what `reader` reads into lines.
    ///
    /// # Errors
    /// A separator of no bytes; a greatest length that has no room for it.
    pub fn new(reader: Reader, framing: Framing) -> Result<LineReader, Invalid> {
        let held = LineBuffer::default();
        Ok(LineReader {
            reader,
            frame: Frame::new(framing)?,
            turn: InterruptibleLock::new(),
            position: Arc::clone(&held.position),
            held: Mutex::new(held),
            returned: Mutex::default(),
            has_returned: AtomicBool::new(false),
            generation: fork::generation(),
        })
    }

    /// The stream underneath. Bytes that are read from it directly pass the buffer by.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The rule by which lines are cut.
    pub fn framing(&self) -> &Framing {
        &self.frame.framing
    }

    /// The offset, in all that the program wrote, of the next byte that is given out:
    /// all before it was given out, or dropped and told.
    pub fn position(&self) -> u64 {
        // Relaxed: a number by itself, and no other memory is read by it. A thread that
        // was given a line sees at least the position behind that, which it wrote itself.
        self.position.load(Ordering::Relaxed)
    }

    /// Gives the next item to `make` if it is here already; none if it is not, or if
    /// another thread is reading. At most `limit` bytes of a
    /// line, and the rest with the next. Never blocks. `make` must not use this
    /// reader.
    ///
    /// # Errors
    /// [`Closed`](crate::stream::Closed), [`LineTooLong`](super::LineTooLong); why the stream failed at this place.
    pub fn try_line<R>(
        &self,
        limit: usize,
        make: impl FnOnce(Item<'_>) -> R,
    ) -> io::Result<Option<R>> {
        self.try_line_as(&self.frame, limit, make)
    }

    /// Waits until [`try_line`](LineReader::try_line) has something to give. By the
    /// time it is called another thread may have taken it.
    ///
    /// # Errors
    /// [`Closed`](crate::stream::Closed), `TimedOut`, `Interrupted`, `OutOfMemory` for a line that is too
    /// long for it; `Unsupported` in a fork.
    ///
    /// # Blocking
    /// Until then, or until the reader is closed.
    pub fn await_line(&self, limit: usize, patience: Patience<'_>) -> io::Result<()> {
        self.await_line_as(&self.frame, limit, patience)
    }

    /// Gives bytes that are here already to `make`, at most `limit`, and takes as
    /// many as it says. None if there are none, or if another thread is reading.
    /// Never blocks. `make` must not use this reader.
    ///
    /// # Errors
    /// [`Closed`](crate::stream::Closed); why the stream failed at this place.
    pub fn try_bytes<R>(
        &self,
        limit: usize,
        make: impl FnOnce(Item<'_>) -> (R, usize),
    ) -> io::Result<Option<R>> {
        self.check()?;
        let Some(mut held) = self.try_lock() else {
            return Ok(None);
        };
        if held.is_empty() && limit > 0 {
            return Ok(None);
        }
        let n = held.bytes().len().min(limit);
        if n > 0 || limit == 0 {
            let (made, taken) = make(Item::Line(&held.bytes()[..n]));
            held.take_bytes(taken.min(n));
            return Ok(Some(made));
        }
        if let AfterBuffer::Gap(gap) = held.after {
            let (made, taken) = make(Item::Gap(gap));
            if taken > 0 {
                held.after = AfterBuffer::More;
                held.advance_position(gap);
            }
            return Ok(Some(made));
        }
        Ok(match held.take_after()? {
            Chunk::End => Some(make(Item::End).0),
            Chunk::Bytes(_) | Chunk::Gap(_) => None,
        })
    }

    /// Waits until [`try_bytes`](LineReader::try_bytes) has something to give.
    ///
    /// # Errors
    /// As [`await_line`](LineReader::await_line).
    ///
    /// # Blocking
    /// Until then, or until the reader is closed.
    pub fn await_bytes(&self, patience: Patience<'_>) -> io::Result<()> {
        let (_mine, mut held) = self.wait_turn(patience)?;
        while held.is_empty() {
            held.fill(|room| self.reader.read_with(room, patience))?;
        }
        Ok(())
    }

    /// Reads what is there into `buffer`, without a detour if nothing is held here.
    ///
    /// # Errors
    /// As [`await_line`](LineReader::await_line); why the stream failed at this
    /// place.
    ///
    /// # Blocking
    /// Until there is something, or until the reader is closed.
    pub fn read_with(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<Chunk> {
        let (_mine, mut held) = self.wait_turn(patience)?;
        if buffer.is_empty() {
            return Ok(Chunk::Bytes(0));
        }
        if held.can_be_bypassed() && buffer.len() >= BUFFER / 4 {
            let chunk = self.reader.read_with(buffer, patience)?;
            held.advance_position(match chunk {
                Chunk::Bytes(n) => n as u64,
                Chunk::Gap(n) => n,
                Chunk::End => 0,
            });
            return Ok(chunk);
        }
        while held.is_empty() {
            held.fill(|room| self.reader.read_with(room, patience))?;
        }
        let n = held.bytes().len().min(buffer.len());
        if n > 0 {
            buffer[..n].copy_from_slice(&held.bytes()[..n]);
            held.take_bytes(n);
            return Ok(Chunk::Bytes(n));
        }
        held.take_after()
    }

    /// Closes the stream, as [`Reader::close`].
    pub fn close(&self) -> bool {
        self.reader.close()
    }

    /// Whether the stream is closed, as [`Reader::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    pub(super) fn check(&self) -> io::Result<()> {
        if self.generation != fork::generation() {
            // A thread of the parent may have held a lock at the fork: for ever, here.
            return Err(fork::used_in_fork());
        }
        match self.reader.is_closed() {
            true => Err(self.reader.closed_error()),
            false => Ok(()),
        }
    }

    /// Waits for the turn. The thread that reads more has it, and holds the buffer; the
    /// close of the stream wakes that thread, and it passes the turn on.
    pub(super) fn wait_turn(
        &self,
        patience: Patience<'_>,
    ) -> io::Result<(InterruptibleGuard<'_>, MutexGuard<'_, LineBuffer>)> {
        self.check()?;
        let mine = self.turn.take(patience, || self.reader.is_closed())?;
        // A short wait: without the turn the lock is held by calls only that never block.
        let mut held = self.held.lock();
        self.take_returned(&mut held)?;
        Ok((mine, held))
    }

    pub(super) fn returned(&self) -> MutexGuard<'_, Vec<u8>> {
        self.returned.lock()
    }

    /// Puts bytes in front that were put back while another thread had the buffer.
    fn take_returned(&self, held: &mut LineBuffer) -> io::Result<()> {
        // Acquire, with the Release of `put_back`: a thread that sees the flag finds the
        // bytes. A thread that misses it takes them the next time.
        if self.has_returned.load(Ordering::Acquire) {
            let mut returned = self.returned();
            held.put_back(&returned)?;
            *returned = Vec::new();
            // Relaxed: written with `returned` locked, as `put_back` writes it.
            self.has_returned.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, LineBuffer>> {
        let mut held = self.held.try_lock()?;
        // An error means no memory: nothing can be given then, and a call that waits says so.
        self.take_returned(&mut held).ok()?;
        Some(held)
    }
}
