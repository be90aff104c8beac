//! What was read and not given out yet, and where it is cut.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Chunk, Closed};
use super::framing::{Frame, Framing, TooLong};

/// What is read at once, when much comes. A line that is longer makes the memory
/// grow.
pub(in crate::stream) const BUFFER: usize = 128 * 1024;

/// The same for a stream that says little: there may be thousands.
const SMALL: usize = 8 * 1024;

#[derive(Debug, Default)]
pub(in crate::stream) struct State {
    buffer: Vec<u8>,
    /// The part that was not given out yet. What is counted below is counted from
    /// its start.
    held: Range<usize>,
    /// For which framing what follows was found out.
    framing: Option<Framing>,
    /// Before this no separator begins.
    searched: usize,
    /// The first separator, so that a line that is given out in many pieces is not
    /// searched for each.
    found: Option<(usize, usize)>,
    /// So much of the line that is held was given out already.
    given: usize,
    /// So many bytes are what is left of a separator.
    rest: usize,
    /// A `\n` that comes next belongs to a line that was given out.
    skip_newline: bool,
    /// Whether more came than fits a small buffer.
    flows: bool,
    /// Where in the stream what is held begins. Written under the lock, read by
    /// anyone.
    pub(super) position: Arc<AtomicU64>,
    /// What comes behind the buffer.
    pub(in crate::stream) then: Then,
}

#[derive(Debug, Default)]
pub(in crate::stream) enum Then {
    #[default]
    More,
    Gap(u64),
    /// Told once, and then there may be more.
    Failed(io::Error),
    End,
}

impl Then {
    fn is_more(&self) -> bool {
        matches!(self, Then::More)
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stream) enum Ready {
    /// So many bytes of the buffer.
    Line(Cut),
    /// What comes behind the buffer, which is empty.
    Then,
    TooLong,
}

/// A part of the buffer that is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stream) struct Cut {
    pub(in crate::stream) length: usize,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The line ends here, or at least this piece of one that is too long.
    Whole,
    /// The caller wanted no more of it.
    Short,
    /// Within a separator, of which so much is left.
    Separator(usize),
}

impl State {
    pub(in crate::stream) fn bytes(&self) -> &[u8] {
        &self.buffer[self.held.clone()]
    }

    /// Forgets what was found out for another framing.
    pub(in crate::stream) fn reframe(&mut self, frame: &Frame) {
        if self.framing.as_ref() != Some(&frame.framing) {
            self.framing = Some(frame.framing.clone());
            (self.searched, self.found) = (0, None);
            (self.given, self.rest) = (0, 0);
        }
    }

    /// Puts bytes in front.
    pub(super) fn put_back(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.held.start >= bytes.len() {
            let start = self.held.start - bytes.len();
            self.buffer[start..self.held.start].copy_from_slice(bytes);
            self.held.start = start;
        } else {
            let mut buffer = Vec::new();
            let size = bytes.len() + self.held.len();
            let reserved = buffer.try_reserve_exact(size);
            reserved.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            buffer.extend_from_slice(bytes);
            buffer.extend_from_slice(self.bytes());
            self.buffer = buffer;
            self.held = 0..size;
        }
        (self.searched, self.found) = (0, None);
        (self.given, self.rest) = (0, 0);
        self.pass_by((bytes.len() as u64).wrapping_neg());
        Ok(())
    }

    /// What can be given out now; none if more has to be read first.
    pub(in crate::stream) fn ready(&mut self, frame: &Frame, limit: usize) -> Option<Ready> {
        self.skip();
        let line = |length, end| Some(Ready::Line(Cut { length, end }));
        if limit == 0 {
            return line(0, End::Short);
        }
        if self.rest > 0 {
            let n = self.rest.min(limit);
            return line(n, self.left_of_separator(n));
        }
        let length = self.held.len();
        let found = self.search(frame);
        let splits = frame.framing.too_long == TooLong::Split;
        let mut most = match frame.framing.max_length {
            Some(most) => most - self.given.min(most),
            None => usize::MAX,
        };
        let is_end_only = matches!(found, Some((0, end)) if end > most);
        if splits && (most == 0 || is_end_only) {
            // The piece is full, or the separator has no room in it.
            self.given = 0;
            most = frame.framing.max_length.unwrap_or(usize::MAX);
        }
        let cut = most.min(limit);
        let piece = match cut == most {
            true => End::Whole,
            false => End::Short,
        };
        if let Some((start, end)) = found {
            return match end {
                _ if end <= cut => line(end, End::Whole),
                // The `\n` goes without saying, as one that comes later.
                _ if frame.takes_returns() && end - start == 2 && start < cut => {
                    line(start + 1, End::Whole)
                }
                _ if end > most && !splits => Some(Ready::TooLong),
                _ if start >= cut => line(cut, piece),
                _ if start > 0 => line(start, piece),
                _ => line(cut, End::Separator(end - cut)),
            };
        }
        if length > most && !splits {
            return Some(Ready::TooLong);
        }
        if length >= cut && length > 0 {
            let begun = frame.begun(self.bytes());
            let may_end = begun > 0 && length - begun < cut;
            let may_fit = length == most && !splits;
            if !(self.then.is_more() && (may_end || may_fit)) {
                return line(cut, piece);
            }
        }
        match self.then {
            Then::More => None,
            _ if length > 0 => line(length, End::Whole),
            _ => Some(Ready::Then),
        }
    }

    fn left_of_separator(&self, n: usize) -> End {
        match self.rest - n {
            0 => End::Whole,
            left => End::Separator(left),
        }
    }

    fn search(&mut self, frame: &Frame) -> Option<(usize, usize)> {
        if self.found.is_none() {
            let bytes = &self.buffer[self.held.clone()];
            self.found = frame.find(bytes, self.searched);
            if self.found.is_none() {
                self.searched = frame.searched(bytes);
            }
        }
        self.found
    }

    /// Takes out what [`ready`](State::ready) has offered.
    pub(in crate::stream) fn give(&mut self, frame: &Frame, cut: Cut) {
        let Some(last) = cut.length.checked_sub(1) else {
            return;
        };
        let is_return = frame.takes_returns() && self.bytes()[last] == b'\r';
        match cut.end {
            End::Whole => {
                self.skip_newline = is_return;
                (self.given, self.rest) = (0, 0);
            }
            End::Short => self.given += cut.length,
            End::Separator(left) => self.rest = left,
        }
        self.consume(cut.length);
    }

    /// Takes bytes out that nobody looked at for lines.
    pub(in crate::stream) fn take(&mut self, n: usize) {
        self.rest = self.rest.saturating_sub(n);
        self.given = 0;
        self.consume(n);
    }

    /// So many bytes were given out or dropped.
    pub(super) fn pass_by(&mut self, n: u64) {
        // No other writes: that is cheaper than an addition that nobody can split.
        let position = self.position.load(Ordering::Relaxed);
        self.position
            .store(position.wrapping_add(n), Ordering::Relaxed);
    }

    fn consume(&mut self, n: usize) {
        self.held.start += n;
        self.pass_by(n as u64);
        self.searched = self.searched.saturating_sub(n);
        self.found = self
            .found
            .filter(|(start, _)| n <= *start)
            .map(|(start, end)| (start - n, end - n));
    }

    /// Passes over the `\n` of a line that has gone already.
    pub(in crate::stream) fn skip(&mut self) {
        if std::mem::take(&mut self.skip_newline) {
            match self.bytes().first() {
                Some(b'\n') => self.consume(1),
                Some(_) => {}
                None => self.skip_newline = self.then.is_more(),
            }
        }
    }

    /// Whether bytes have to be read before any can be given out, lines or not.
    pub(in crate::stream) fn is_empty(&mut self) -> bool {
        self.skip();
        self.held.is_empty() && self.then.is_more()
    }

    /// Whether bytes that are read now may go past the buffer.
    pub(in crate::stream) fn is_aside(&self) -> bool {
        self.held.is_empty() && self.then.is_more() && !self.skip_newline
    }

    /// Reads more, once.
    ///
    /// # Errors
    /// That there is no memory, and what passes: a deadline, an interrupt, a
    /// close. What else goes wrong comes in its place, behind what was read before.
    pub(in crate::stream) fn fill(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<Chunk>,
    ) -> io::Result<()> {
        if !self.then.is_more() {
            return Ok(());
        }
        self.make_room()?;
        let room = self.buffer.len() - self.held.end;
        match read(&mut self.buffer[self.held.end..]) {
            Ok(Chunk::Bytes(n)) => {
                self.held.end += n;
                self.flows |= n == room;
            }
            Ok(Chunk::Gap(n)) => self.then = Then::Gap(n),
            Ok(Chunk::End) => self.then = Then::End,
            Err(error) if passes(&error) => return Err(error),
            Err(error) => self.then = Then::Failed(error),
        }
        Ok(())
    }

    /// Sees to it that a quarter of a buffer at least is free.
    fn make_room(&mut self) -> io::Result<()> {
        let least = match self.flows {
            true => BUFFER,
            false => SMALL,
        };
        let held = self.held.len();
        if held == 0 {
            self.held = 0..0;
        }
        // After a long line its memory is given back.
        let is_large = self.buffer.len() > 8 * BUFFER && held <= BUFFER;
        if self.buffer.len() - self.held.end >= least / 4 && !is_large {
            return Ok(());
        }
        if self.buffer.len() >= least && held <= self.buffer.len() / 2 && !is_large {
            self.buffer.copy_within(self.held.clone(), 0);
        } else {
            // At least twice what is held: each byte is copied twice at most.
            let size = (2 * held).max(least);
            let mut buffer = Vec::new();
            let reserved = buffer.try_reserve_exact(size);
            reserved.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            buffer.extend_from_slice(self.bytes());
            buffer.resize(size, 0);
            self.buffer = buffer;
        }
        self.held = 0..held;
        Ok(())
    }

    #[cfg(test)]
    pub(in crate::stream) fn memory(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Whether the same call may do better next time.
pub(in crate::stream) fn passes(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, TimedOut, Unsupported};
    let kinds = [Interrupted, OutOfMemory, TimedOut, Unsupported];
    Closed::is(error) || kinds.contains(&error.kind())
}
