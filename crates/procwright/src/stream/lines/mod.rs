//! Lines out of a stream.

mod framing;
mod host;
mod iter;
mod look;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::{Chunk, Closed, Patience, Reader};
use crate::error::Invalid;
use crate::handle::{Mine, Turn};
use crate::sys::fork;
pub use framing::{Frame, Framing, Separator, TooLong};
pub use iter::{LineItem, Lines};
pub(super) use look::Seen;
use state::BUFFER;
pub(super) use state::{Ready, State, Then, passes};

/// A line is longer than it may be. It comes wrapped in an [`io::Error`] of kind
/// `InvalidData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than the {max_length} bytes that were allowed")]
pub struct LineTooLong {
    /// What was allowed.
    pub max_length: usize,
}

/// What comes next in a stream of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A line with its separator, or without one: the last of a stream that does
    /// not end with one, the last before a gap, a piece of one that is too long.
    Line(&'a [u8]),
    /// So many bytes were dropped here, as [`Overflow`](crate::Overflow) says.
    Gap(u64),
    /// The end.
    End,
}

/// Reads a stream line by line, and otherwise. What [`Reader`] is with a buffer.
///
/// Any number of threads may use it at once; each line goes to one of them. What
/// blocks has a form that does not, so that a front end can hand out lines without
/// letting go of an interpreter's lock for each: `try_` first, then `await_`.
/// [`lines`](LineReader::lines) is for everybody else.
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
    reader: Reader,
    frame: Frame,
    /// Whose turn it is to read more. Those who wait do so here, where they can
    /// be interrupted.
    turn: Turn,
    /// Held while more is read: by who has the turn. Others only try.
    state: Mutex<State>,
    /// What was put back while somebody else had the state: for who has it next.
    returned: Mutex<Vec<u8>>,
    has_returned: AtomicBool,
    position: Arc<AtomicU64>,
    generation: u32,
}

impl LineReader {
    /// Lines of what `reader` reads.
    ///
    /// # Errors
    /// A separator of no bytes; a greatest length that has no room for it.
    pub fn new(reader: Reader, framing: Framing) -> Result<LineReader, Invalid> {
        let state = State::default();
        Ok(LineReader {
            reader,
            frame: Frame::new(framing)?,
            turn: Turn::new(),
            position: Arc::clone(&state.position),
            state: Mutex::new(state),
            returned: Mutex::default(),
            has_returned: AtomicBool::new(false),
            generation: fork::generation(),
        })
    }

    /// The stream underneath. What is read from it passes the buffer by.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// What a line is here.
    pub fn framing(&self) -> &Framing {
        &self.frame.framing
    }

    /// Where in what the program wrote the next byte stands that is given out: all
    /// before it was given out, or dropped and told.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Gives the next line, or what else comes, to `make`, if it is here already;
    /// none if it is not, or if another thread is at it. At most `limit` bytes of a
    /// line, and the rest with the next. Never blocks. `make` must not use this
    /// reader.
    ///
    /// # Errors
    /// [`Closed`], [`LineTooLong`]; why the stream failed at this place.
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
    /// [`Closed`], `TimedOut`, `Interrupted`, `OutOfMemory` for a line that is too
    /// long for it; `Unsupported` in a fork.
    ///
    /// # Blocking
    /// Until then, or until the reader is closed.
    pub fn await_line(&self, limit: usize, patience: Patience<'_>) -> io::Result<()> {
        self.await_line_as(&self.frame, limit, patience)
    }

    /// Gives bytes that are here already to `make`, at most `limit`, and takes as
    /// many as it says. None if there are none, or if another thread is at them.
    /// Never blocks. `make` must not use this reader.
    ///
    /// # Errors
    /// [`Closed`]; why the stream failed at this place.
    pub fn try_bytes<R>(
        &self,
        limit: usize,
        make: impl FnOnce(Item<'_>) -> (R, usize),
    ) -> io::Result<Option<R>> {
        self.check()?;
        let Some(mut state) = self.try_lock() else {
            return Ok(None);
        };
        if state.is_empty() && limit > 0 {
            return Ok(None);
        }
        let n = state.bytes().len().min(limit);
        if n > 0 || limit == 0 {
            let (made, taken) = make(Item::Line(&state.bytes()[..n]));
            state.take(taken.min(n));
            return Ok(Some(made));
        }
        if let Then::Gap(gap) = state.then {
            let (made, taken) = make(Item::Gap(gap));
            if taken > 0 {
                state.then = Then::More;
                state.pass_by(gap);
            }
            return Ok(Some(made));
        }
        Ok(match pass(&mut state)? {
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
        let (_mine, mut state) = self.wait_turn(patience)?;
        while state.is_empty() {
            state.fill(|room| self.reader.read_with(room, patience))?;
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
        let (_mine, mut state) = self.wait_turn(patience)?;
        if buffer.is_empty() {
            return Ok(Chunk::Bytes(0));
        }
        if state.is_aside() && buffer.len() >= BUFFER / 4 {
            let chunk = self.reader.read_with(buffer, patience)?;
            state.pass_by(match chunk {
                Chunk::Bytes(n) => n as u64,
                Chunk::Gap(n) => n,
                Chunk::End => 0,
            });
            return Ok(chunk);
        }
        while state.is_empty() {
            state.fill(|room| self.reader.read_with(room, patience))?;
        }
        let n = state.bytes().len().min(buffer.len());
        if n > 0 {
            buffer[..n].copy_from_slice(&state.bytes()[..n]);
            state.take(n);
            return Ok(Chunk::Bytes(n));
        }
        pass(&mut state)
    }

    /// As [`Reader::close`].
    pub fn close(&self) -> bool {
        self.reader.close()
    }

    /// As [`Reader::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    fn check(&self) -> io::Result<()> {
        if self.generation != fork::generation() {
            // Its locks may be held for ever.
            return Err(fork::not_ours());
        }
        match self.reader.is_closed() {
            true => Err(io::Error::other(Closed)),
            false => Ok(()),
        }
    }

    /// Waits for the turn. Whoever waits for more has it, and holds the state; he
    /// is woken by the close of the stream, and passes the turn on.
    fn wait_turn(&self, patience: Patience<'_>) -> io::Result<(Mine<'_>, MutexGuard<'_, State>)> {
        self.check()?;
        let mine = self.turn.take(patience, || self.reader.is_closed())?;
        // Not for long: only those who do not wait may have it.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.take_in(&mut state)?;
        Ok((mine, state))
    }

    fn returned(&self) -> MutexGuard<'_, Vec<u8>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was put back while somebody else had the state.
    fn take_in(&self, state: &mut State) -> io::Result<()> {
        if self.has_returned.load(Ordering::Acquire) {
            let mut returned = self.returned();
            state.put_back(&returned)?;
            *returned = Vec::new();
            self.has_returned.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        // Without memory for that nothing is to be had here; who waits is told.
        self.take_in(&mut state).ok()?;
        Some(state)
    }
}

/// Passes what is behind the buffer, which is empty; the end stays.
pub(super) fn pass(state: &mut State) -> io::Result<Chunk> {
    match std::mem::take(&mut state.then) {
        Then::More => Ok(Chunk::Bytes(0)),
        Then::Gap(n) => {
            state.pass_by(n);
            Ok(Chunk::Gap(n))
        }
        Then::Failed(error) => Err(error),
        Then::End => {
            state.then = Then::End;
            Ok(Chunk::End)
        }
    }
}
