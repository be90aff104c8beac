//! Lines out of a stream.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memchr::{memchr, memchr2, memmem};

use super::{Chunk, Closed, Patience, Reader};

/// What is read at once. A line that is longer makes the memory grow.
const BUFFER: usize = 128 * 1024;

/// Where a line ends, and how long it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framing {
    /// What ends a line.
    pub separator: Separator,
    /// The longest line in bytes, its separator included. None by default: then a
    /// line takes as much memory as it is long.
    pub max_length: Option<usize>,
    /// What becomes of a longer one.
    pub too_long: TooLong,
}

/// What ends a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Separator {
    /// `\n`.
    Newline,
    /// `\n`, `\r` or `\r\n`: also what a progress display writes over and over.
    /// The line is there with its `\r`; a `\n` that comes right after it, but
    /// later, belongs to it and is not given out.
    NewlineOrReturn,
    /// These bytes, at least one.
    Bytes(Vec<u8>),
}

/// What becomes of a line that is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooLong {
    /// It comes in pieces of the greatest length, all but the last without a
    /// separator.
    Split,
    /// [`LineTooLong`]. The bytes stay where they are, to be read by other means.
    Fail,
}

impl Default for Framing {
    fn default() -> Framing {
        Framing {
            separator: Separator::Newline,
            max_length: None,
            too_long: TooLong::Split,
        }
    }
}

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
#[derive(Debug)]
pub struct LineReader {
    reader: Reader,
    framing: Framing,
    /// Held while its holder waits for more.
    state: Mutex<State>,
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    buffer: Vec<u8>,
    /// The part that was not given out yet.
    held: Range<usize>,
    /// Where in it no separator begins, as was seen before.
    searched: usize,
    /// Which separator that is.
    searched_for: Option<Separator>,
    /// A `\n` that comes next belongs to a line that was given out.
    skip_newline: bool,
    /// What comes behind the buffer.
    then: Then,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Then {
    #[default]
    More,
    Gap(u64),
    End,
}

/// What of a state comes next.
#[derive(Clone, Copy, Debug)]
enum Ready {
    Line(usize),
    Gap(u64),
    End,
    TooLong,
}

impl State {
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.held.clone()]
    }

    /// What can be given out now; none if more has to be read first.
    fn ready(&mut self, framing: &Framing, limit: usize) -> Option<Ready> {
        if self.searched_for.as_ref() != Some(&framing.separator) {
            self.searched_for = Some(framing.separator.clone());
            self.searched = 0;
        }
        if std::mem::take(&mut self.skip_newline) {
            match self.bytes().first() {
                Some(b'\n') => self.consume(1),
                Some(_) => {}
                None => self.skip_newline = self.then == Then::More,
            }
        }
        let most = framing.max_length.unwrap_or(usize::MAX);
        let bytes = &self.buffer[self.held.clone()];
        let found = framing.separator.end_of_first(bytes, self.searched);
        let length = match found {
            Some(end) => end,
            None => {
                self.searched = bytes.len().saturating_sub(framing.separator.longest() - 1);
                bytes.len()
            }
        };
        if length > most && framing.too_long == TooLong::Fail && most <= limit {
            return Some(Ready::TooLong);
        }
        if found.is_some() || length >= most.min(limit) {
            return Some(Ready::Line(length.min(most).min(limit)));
        }
        match self.then {
            Then::More => None,
            _ if length > 0 => Some(Ready::Line(length)),
            Then::Gap(n) => Some(Ready::Gap(n)),
            Then::End => Some(Ready::End),
        }
    }

    fn consume(&mut self, n: usize) {
        self.held.start += n;
        self.searched = self.searched.saturating_sub(n);
    }

    /// Reads more, once.
    fn fill(&mut self, reader: &Reader, patience: Patience<'_>) -> io::Result<()> {
        if self.then != Then::More {
            return Ok(());
        }
        if self.held.is_empty() {
            self.held = 0..0;
            if self.buffer.len() > 8 * BUFFER {
                // After a long line.
                self.buffer = Vec::new();
            }
        }
        if self.buffer.len() - self.held.end < BUFFER / 4 {
            self.make_room()?;
        }
        match reader.read_with(&mut self.buffer[self.held.end..], patience)? {
            Chunk::Bytes(n) => self.held.end += n,
            Chunk::Gap(n) => self.then = Then::Gap(n),
            Chunk::End => self.then = Then::End,
        }
        Ok(())
    }

    fn make_room(&mut self) -> io::Result<()> {
        if self.held.start > 0 && self.held.len() <= self.buffer.len() / 2 {
            self.buffer.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.len();
            return Ok(());
        }
        let size = (2 * self.buffer.len()).max(BUFFER);
        let more = size - self.buffer.len();
        let reserved = self.buffer.try_reserve_exact(more);
        reserved.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        self.buffer.resize(size, 0);
        Ok(())
    }
}

impl Separator {
    /// Behind the first separator in `bytes`, of which the part before `from` has
    /// none that begins there.
    fn end_of_first(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let rest = &bytes[from..];
        let end = match self {
            Separator::Newline => memchr(b'\n', rest)? + 1,
            Separator::NewlineOrReturn => {
                let at = memchr2(b'\n', b'\r', rest)?;
                match rest[at..].starts_with(b"\r\n") {
                    true => at + 2,
                    false => at + 1,
                }
            }
            Separator::Bytes(separator) => memmem::find(rest, separator)? + separator.len(),
        };
        Some(from + end)
    }

    fn longest(&self) -> usize {
        match self {
            Separator::Newline | Separator::NewlineOrReturn => 1,
            Separator::Bytes(separator) => separator.len().max(1),
        }
    }
}

impl LineReader {
    /// Lines of what `reader` reads.
    pub fn new(reader: Reader, framing: Framing) -> LineReader {
        LineReader {
            reader,
            framing,
            state: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// The stream underneath. What is read from it passes the buffer by.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Gives the next line, or what else comes, to `make`, if it is here already;
    /// none if it is not, or if another thread is at it. At most `limit` bytes of a
    /// line, and the rest with the next. Never blocks.
    ///
    /// # Errors
    /// [`Closed`], [`LineTooLong`].
    pub fn try_line<R>(
        &self,
        limit: usize,
        make: impl FnOnce(Item<'_>) -> R,
    ) -> io::Result<Option<R>> {
        self.try_line_as(&self.framing, limit, make)
    }

    /// As [`try_line`](LineReader::try_line), with another framing for this line.
    ///
    /// # Errors
    /// As there.
    pub fn try_line_as<R>(
        &self,
        framing: &Framing,
        limit: usize,
        make: impl FnOnce(Item<'_>) -> R,
    ) -> io::Result<Option<R>> {
        self.check()?;
        let Ok(mut state) = self.state.try_lock() else {
            return Ok(None);
        };
        let Some(ready) = state.ready(framing, limit) else {
            return Ok(None);
        };
        Ok(Some(match ready {
            Ready::Line(n) => {
                let made = make(Item::Line(&state.bytes()[..n]));
                state.skip_newline = framing.separator == Separator::NewlineOrReturn
                    && state.bytes()[n - 1] == b'\r';
                state.consume(n);
                made
            }
            Ready::Gap(n) => {
                state.then = Then::More;
                make(Item::Gap(n))
            }
            Ready::End => make(Item::End),
            Ready::TooLong => return Err(too_long(framing)),
        }))
    }

    /// Waits until [`try_line`](LineReader::try_line) has something to give. By the
    /// time it is called another thread may have taken it.
    ///
    /// # Errors
    /// As [`Reader::read_with`].
    pub fn await_line(&self, limit: usize, patience: Patience<'_>) -> io::Result<()> {
        self.await_line_as(&self.framing, limit, patience)
    }

    /// Waits until [`try_line_as`](LineReader::try_line_as) has something to give.
    ///
    /// # Errors
    /// As [`Reader::read_with`].
    pub fn await_line_as(
        &self,
        framing: &Framing,
        limit: usize,
        patience: Patience<'_>,
    ) -> io::Result<()> {
        let mut state = self.lock();
        while state.ready(framing, limit).is_none() {
            self.check()?;
            state.fill(&self.reader, patience)?;
        }
        Ok(())
    }

    /// Gives bytes that are here already to `make`, at most `limit`, and takes as
    /// many as it says. None if there are none, or if another thread is at them.
    /// Never blocks.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn try_bytes<R>(
        &self,
        limit: usize,
        make: impl FnOnce(Item<'_>) -> (R, usize),
    ) -> io::Result<Option<R>> {
        self.check()?;
        let Ok(mut state) = self.state.try_lock() else {
            return Ok(None);
        };
        let n = state.held.len().min(limit);
        if n > 0 || limit == 0 {
            let (made, taken) = make(Item::Line(&state.bytes()[..n]));
            state.consume(taken.min(n));
            state.skip_newline = false;
            return Ok(Some(made));
        }
        Ok(match state.then {
            Then::More => None,
            Then::Gap(gap) => {
                let (made, taken) = make(Item::Gap(gap));
                if taken > 0 {
                    state.then = Then::More;
                }
                Some(made)
            }
            Then::End => Some(make(Item::End).0),
        })
    }

    /// Gives all bytes that are here to `make`, which may be none, and whether they
    /// are the last before a gap or the end; takes as many as it says. None if
    /// another thread is at them. Never blocks.
    ///
    /// For who decodes: a character may be here in part.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn try_held<R>(
        &self,
        make: impl FnOnce(&[u8], bool) -> (R, usize),
    ) -> io::Result<Option<R>> {
        self.check()?;
        let Ok(mut state) = self.state.try_lock() else {
            return Ok(None);
        };
        let (made, taken) = make(state.bytes(), state.then != Then::More);
        let taken = taken.min(state.held.len());
        state.consume(taken);
        if taken > 0 {
            state.skip_newline = false;
        }
        Ok(Some(made))
    }

    /// Puts bytes before all that is here, so that they are read again: for who was
    /// interrupted when he had read a part.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn put_back(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        let room = state.held.start;
        if room >= bytes.len() {
            let start = room - bytes.len();
            state.buffer[start..room].copy_from_slice(bytes);
            state.held.start = start;
        } else {
            let mut buffer = Vec::new();
            let length = bytes.len() + state.held.len();
            let reserved = buffer.try_reserve_exact(length);
            reserved.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            buffer.extend_from_slice(bytes);
            buffer.extend_from_slice(state.bytes());
            state.buffer = buffer;
            state.held = 0..length;
        }
        state.searched = 0;
        Ok(())
    }

    /// Waits until [`try_bytes`](LineReader::try_bytes) has something to give.
    ///
    /// # Errors
    /// As [`Reader::read_with`].
    pub fn await_bytes(&self, patience: Patience<'_>) -> io::Result<()> {
        let mut state = self.lock();
        while state.held.is_empty() && state.then == Then::More {
            self.check()?;
            state.fill(&self.reader, patience)?;
        }
        Ok(())
    }

    /// Reads what is there into `buffer`, without a detour if nothing is held here.
    ///
    /// # Errors
    /// As [`Reader::read_with`].
    pub fn read_with(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<Chunk> {
        let mut state = self.lock();
        self.check()?;
        if buffer.is_empty() {
            return Ok(Chunk::Bytes(0));
        }
        if state.held.is_empty() && state.then == Then::More {
            if buffer.len() >= BUFFER / 4 {
                return self.reader.read_with(buffer, patience);
            }
            state.fill(&self.reader, patience)?;
        }
        let n = state.held.len().min(buffer.len());
        if n > 0 {
            buffer[..n].copy_from_slice(&state.bytes()[..n]);
            state.consume(n);
            state.skip_newline = false;
            return Ok(Chunk::Bytes(n));
        }
        Ok(match state.then {
            Then::Gap(gap) => {
                state.then = Then::More;
                Chunk::Gap(gap)
            }
            Then::More | Then::End => Chunk::End,
        })
    }

    /// As [`Reader::close`].
    pub fn close(&self) -> bool {
        self.closed.store(true, Ordering::Release);
        self.reader.close()
    }

    /// As [`Reader::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.reader.is_closed()
    }

    fn check(&self) -> io::Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(io::Error::other(Closed)),
            false => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_long(framing: &Framing) -> io::Error {
    let max_length = framing.max_length.unwrap_or(usize::MAX);
    io::Error::new(io::ErrorKind::InvalidData, LineTooLong { max_length })
}
